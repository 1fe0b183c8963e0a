// A Haraka plugin: everything is relayed, to the benchmark's sink alone.
const sink = { exchange: "127.0.0.1", port: Number(process.env.SINK_PORT), priority: 0 };

exports.hook_connect = (next, connection) => {
  connection.relaying = true;
  next();
};

exports.hook_rcpt = (next) => next(OK);

exports.hook_get_mx = (next) => next(OK, sink);
