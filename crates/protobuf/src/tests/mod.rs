//! What holds for every message: there and back again, real bodies byte by byte, and no panic on any bytes.

mod bodies;
mod generate;
mod laws;
