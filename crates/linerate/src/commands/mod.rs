//! One file per verb.

pub mod advise;
pub mod agent;
pub mod bench;
pub mod calc;
pub mod compare;
pub mod conduct;
pub mod documents;
pub mod explain;
pub mod facts;
pub mod flame;
pub mod history;
pub mod import;
pub mod lab;
pub mod plan_file;
mod port;
pub mod profile;
mod prove;
pub mod receive;
pub mod reproduce;
pub mod rules;
pub mod run;
pub mod send;
pub mod show;
mod slower;
pub mod stat;
pub mod tune;
pub mod watch;
