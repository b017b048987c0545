// A client of gRPC reflection: asks a server for its services and their methods, and prints them as JSON.
//
// Its arguments are the server's address and the version of reflection to ask by, v1 or v1alpha.
"use strict";

const grpc = require("@grpc/grpc-js");
const { GrpcReflection } = require("grpc-js-reflection-client");

const [, , address, version] = process.argv;
const client = new GrpcReflection(address, grpc.credentials.createInsecure(), {}, version);

async function ask() {
  const services = await client.listServices();
  const methods = {};
  for (const service of services) {
    methods[service] = (await client.listMethods(service)).map((method) => method.name);
  }
  process.stdout.write(JSON.stringify(methods));
  process.exit(0);
}

ask().catch((error) => {
  process.stderr.write(`${error}\n`);
  process.exit(1);
});
