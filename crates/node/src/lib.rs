//! homeostat-node
