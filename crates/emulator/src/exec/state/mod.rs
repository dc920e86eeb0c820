//! A launch as data: its grid, blocks, warps and workers, and its faults.

pub(super) mod blocks;
pub(super) mod clocks;
pub(super) mod copies;
mod cta;
mod fault;
mod grid;
mod launch;
pub(super) mod race;
mod stack;
mod together;
mod warp;
pub(super) mod within;
mod worker;

pub(super) use copies::Copies;
pub(super) use cta::{Barrier, Cta, HELD};
pub(super) use fault::{Findings, Where};
pub(super) use grid::Grid;
pub use launch::{FaultKind, LaunchConfig, LaunchFault, LaunchOptions, LaunchReport};
pub(super) use launch::{fault, found};
pub(super) use race::Races;
pub(super) use stack::Stack;
pub(super) use warp::{MAX_DEPTH, NONE, Pick, STACK, State, Warp};
pub(super) use worker::Worker;
