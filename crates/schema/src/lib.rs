//! homeostat-schema
