//! Tests of the base that a change has lost.
