//! Statistics of files of numbers and of campaigns, against ministat itself and against published figures.

mod compare;
mod published;
mod stat;
