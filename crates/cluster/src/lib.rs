//! homeostat-cluster
