//! What a line of the generated files becomes.
//!
//! `types!` makes a type of its fields, `kinds!` adds what every kind has. A field is its setter's name, its name in
//! JSON, and how its value is given.

/// A setter.
macro_rules! setter {
    ($name:ident $key:literal text) => {
        #[doc = concat!("Sets `", $key, "`.")]
        #[must_use]
        pub fn $name(mut self, value: impl Into<String>) -> Self {
            crate::fields::set(&mut self.0, $key, serde_json::Value::String(value.into()));
            self
        }
    };
    ($name:ident $key:literal json) => {
        #[doc = concat!("Sets `", $key, "`.")]
        #[must_use]
        pub fn $name(mut self, value: impl Into<serde_json::Value>) -> Self {
            crate::fields::set(&mut self.0, $key, value.into());
            self
        }
    };
    ($name:ident $key:literal int_or_string) => {
        #[doc = concat!("Sets `", $key, "`: a number or a text.")]
        #[must_use]
        pub fn $name(mut self, value: impl Into<crate::IntOrString>) -> Self {
            crate::fields::set(&mut self.0, $key, value.into().into());
            self
        }
    };
    ($name:ident $key:literal texts) => {
        #[doc = concat!("Sets `", $key, "`, all of it.")]
        #[must_use]
        pub fn $name(mut self, items: impl IntoIterator<Item = impl Into<String>>) -> Self {
            crate::fields::set(&mut self.0, $key, crate::fields::texts(items));
            self
        }
    };
    ($name:ident $key:literal text_map) => {
        #[doc = concat!("Sets `", $key, "`, all of it: keys and values.")]
        #[must_use]
        pub fn $name(
            mut self,
            items: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
        ) -> Self {
            crate::fields::set(&mut self.0, $key, crate::fields::text_map(items));
            self
        }
    };
    ($name:ident $key:literal byte_map) => {
        #[doc = concat!("Sets `", $key, "`, all of it: keys and bytes.")]
        #[must_use]
        pub fn $name(
            mut self,
            items: impl IntoIterator<Item = (impl Into<String>, impl AsRef<[u8]>)>,
        ) -> Self {
            crate::fields::set(&mut self.0, $key, crate::fields::byte_map(items));
            self
        }
    };
    ($name:ident $key:literal one $t:ty) => {
        #[doc = concat!("Sets `", $key, "`.")]
        #[must_use]
        pub fn $name(mut self, value: $t) -> Self {
            crate::fields::set(&mut self.0, $key, value.into());
            self
        }
    };
    ($name:ident $key:literal many $t:ty) => {
        #[doc = concat!("Sets `", $key, "`, all of it.")]
        #[must_use]
        pub fn $name(mut self, items: impl IntoIterator<Item = $t>) -> Self {
            crate::fields::set(&mut self.0, $key, crate::fields::list(items));
            self
        }
    };
}

/// Types, each with its setters.
macro_rules! types {
    ($($what:literal $type:ident { $($name:ident $key:literal $how:ident $($of:ty)?;)* })*) => {
        $(
            #[doc = concat!("`", $what, "`, as far as it is set.")]
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $type(pub(crate) crate::fields::Fields);

            #[allow(clippy::should_implement_trait, reason = "a setter is named as its field is, such as `add`")]
            impl $type {
                $(setter!($name $key $how $($of)?);)*
            }

            impl From<$type> for serde_json::Value {
                fn from(set: $type) -> Self {
                    Self::Object(set.0)
                }
            }

            impl serde::Serialize for $type {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    self.0.serialize(serializer)
                }
            }
        )*
    };
}

/// `new` of types that are no kinds: nothing is set.
macro_rules! parts {
    ($($type:ident)*) => {
        $(
            impl $type {
                /// Nothing is set.
                pub fn new() -> Self {
                    Self::default()
                }
            }
        )*
    };
}

/// What kinds have: a name, a place, and the type that they configure.
macro_rules! kinds {
    ($($type:ident $version:literal $kind:ty;)*) => {
        $(
            impl $type {
                /// The object of this name; nothing else is set.
                pub fn new(name: impl Into<String>) -> Self {
                    let mut set = Self::default();
                    crate::fields::set(&mut set.0, "apiVersion", $version.into());
                    crate::fields::set(&mut set.0, "kind", stringify!($type).into());
                    crate::fields::meta(&mut set.0, "name", serde_json::Value::String(name.into()));
                    set
                }

                /// Sets `metadata.namespace`.
                #[must_use]
                pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
                    crate::fields::meta(&mut self.0, "namespace", serde_json::Value::String(namespace.into()));
                    self
                }

                /// Adds a label.
                #[must_use]
                pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                    crate::fields::meta_entry(&mut self.0, "labels", key.into(), value.into());
                    self
                }

                /// Adds an annotation.
                #[must_use]
                pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                    crate::fields::meta_entry(&mut self.0, "annotations", key.into(), value.into());
                    self
                }

                /// Sets what `metadata` sets; what else was set of it stays.
                #[must_use]
                pub fn metadata(mut self, metadata: crate::meta::v1::ObjectMeta) -> Self {
                    crate::fields::metas(&mut self.0, metadata.0);
                    self
                }
            }

            impl homeostat_sdk::Applies for $type {
                type Kind = $kind;

                fn into_body(self) -> homeostat_sdk::Result<serde_json::Value> {
                    Ok(serde_json::Value::Object(self.0))
                }
            }
        )*
    };
}
