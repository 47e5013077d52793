//! Plans in, faults, notes and orders out: what planners get wrong, case by case.
