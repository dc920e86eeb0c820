//! Child processes: their environment, their confinement, and their end.

#![deny(unsafe_code)]

pub mod calls;
pub mod child;
pub mod contained;
pub mod device_worker;
pub mod enforcement;
pub mod environment;
pub mod handed;
pub mod own_root;
pub mod privileges;
pub mod proc_files;
pub mod program;
pub mod python;
pub mod shared_events;
pub mod threads;
pub mod whole_program;
