-- The database and the role that Parley connects as: it owns this database and can do nothing else.
-- Run by a superuser, with the variable `password` set: docs/how-to/install-without-containers.md.
CREATE ROLE parley LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE parley OWNER parley TEMPLATE template0 ENCODING 'UTF8';
-- Whoever else has a role on this server neither connects nor makes anything here.
REVOKE ALL ON DATABASE parley FROM PUBLIC;
\connect parley
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO parley;
