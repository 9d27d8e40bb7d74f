//! homeostat-sdk
