//! Child processes: what they inherit, what they may touch, and how they end.

#![forbid(unsafe_code)]

pub mod calls;
pub mod child;
pub mod contained;
pub mod device_worker;
pub mod environment;
pub mod handed;
pub mod own_root;
pub mod privileges;
pub mod proc_files;
pub mod program;
pub mod python;
pub mod sandbox;
pub mod shared_events;
pub mod whole_program;
