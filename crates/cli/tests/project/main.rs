//! Whole projects: generated, compiled, tested, edited, generated again, packaged, run, deployed, taken back; by the
//! generator's own promises (`generator`), and as the book has its reader do it (`book`).

mod book;
mod generated;
mod generator;
#[path = "../shared/kubectls.rs"]
mod kubectls;
mod page;
mod program;
mod reader;
