//! homeostat-controllers
