//! homeostat
