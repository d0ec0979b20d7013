//! The server as clients meet it: real sockets on loopback, the protocol and every promise about faults.

mod busy;
mod client;
mod drain;
mod faults;
mod protocol;
mod shipped;
