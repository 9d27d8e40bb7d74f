//! homeostat-store
