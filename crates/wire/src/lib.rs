//! linerate wire
