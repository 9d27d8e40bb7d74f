//! homeostat-access
