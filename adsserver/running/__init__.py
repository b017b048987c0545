"""The processes of ADS: how one starts, serves at a port and ends, and how several share that port."""
