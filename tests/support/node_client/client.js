// A gRPC client for Node that calls its `xds:///` targets at a steady rate until its standard input ends.
//
// Its one argument is JSON: {"targets": […], "rate_per_s": calls per second to each target, "timeout_s": of one call}.
// It prints a line of JSON for each call that ended, as tests/support/steady.py reads it. The bootstrap comes from the
// environment, as gRPC wants it.
"use strict";

const grpc = require("@grpc/grpc-js");
const xds = require("@grpc/grpc-js-xds");

xds.register();

const asked = JSON.parse(process.argv[2]);
const bytes = (value) => value;
const clients = asked.targets.map((target) => [target, new grpc.Client(target, grpc.credentials.createInsecure())]);
const startedMs = Date.now();
let begun = 0;
let outstanding = 0;
let leaving = false;

function call(target, client) {
  const beganMs = Date.now();
  outstanding += 1;
  const deadline = beganMs + asked.timeout_s * 1000;
  client.makeUnaryRequest("/demo.Echo/Say", bytes, bytes, Buffer.from("hello"), { deadline }, (error, answer) => {
    outstanding -= 1;
    const ended = {
      target,
      began_at: beganMs / 1000,
      seconds: (Date.now() - beganMs) / 1000,
      code: error ? grpc.status[error.code] : "OK",
      text: error ? error.details : answer.toString(),
    };
    process.stdout.write(JSON.stringify(ended) + "\n");
    leave();
  });
}

// Timers of Node are late by milliseconds: each tick makes what is due by now.
const ticks = setInterval(() => {
  for (const due = ((Date.now() - startedMs) / 1000) * asked.rate_per_s; begun <= due; begun += 1) {
    for (const [target, client] of clients) call(target, client);
  }
}, 5);

function leave() {
  if (leaving && outstanding === 0) process.exit(0);
}

process.stdin.resume();
process.stdin.on("end", () => {
  leaving = true;
  clearInterval(ticks);
  leave();
});
