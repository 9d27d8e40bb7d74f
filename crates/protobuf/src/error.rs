//! Why bytes could not be read or an object not be written, in the reference's words where it has them.

/// What is wrong with bytes or an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was sent.
    #[error("empty data")]
    EmptyData,
    /// The first four bytes are not `k8s\0`.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// Only the first four bytes were sent.
    #[error("empty body")]
    EmptyBody,
    /// The bytes end within a value.
    #[error("unexpected EOF")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length beyond what can be addressed.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A group ends that did not begin.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// A group ends where a field is expected.
    #[error("proto: {0}: wiretype end group for non-group")]
    NotAGroup(&'static str),
    /// A field has a number that none can have.
    #[error("proto: {message}: illegal tag {number} (wire type {wire})")]
    IllegalTag {
        /// The message read.
        message: &'static str,
        /// The field's number.
        number: i32,
        /// The tag as it stands in the bytes.
        wire: u64,
    },
    /// A wire type that does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A field of another type than the message has.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType {
        /// The type that the bytes have.
        wire: u8,
        /// The field, as Go spells it.
        field: String,
    },
    /// The envelope names no kind, and nothing else tells.
    #[error("Object 'Kind' is missing in 'runtime.TypeMeta{{APIVersion:{api_version:?}, Kind:\"\"}}'")]
    NoKind {
        /// The version that it names.
        api_version: String,
    },
    /// The envelope names no version, and nothing else tells.
    #[error("Object 'apiVersion' is missing in 'runtime.TypeMeta{{APIVersion:\"\", Kind:{kind:?}}}'")]
    NoVersion {
        /// The kind that it names.
        kind: String,
    },
    /// A kind without protobuf messages.
    #[error(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    )]
    UnknownKind {
        /// Its version.
        api_version: String,
        /// Its name.
        kind: String,
    },
    /// An object to be written is of a kind without protobuf messages.
    #[error(
        "object *{0} does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
    )]
    NotMarshalable(String),
    /// Messages within messages beyond [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("exceeded max depth")]
    TooDeep,
    /// Few bytes that would make very many values.
    #[error("the message holds more values than are accepted")]
    TooMany,
    /// JSON inside a message is none.
    #[error("{message}: {why}")]
    Json {
        /// The message with JSON in it.
        message: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A time or another value that has no JSON form.
    #[error("{message}: {value} has no JSON form")]
    NoForm {
        /// The message.
        message: &'static str,
        /// Its content.
        value: String,
    },
    /// A value of an object to be written is not of its field's type.
    #[error("{message}: {value} does not fit field {field}")]
    Mismatch {
        /// The message to be written.
        message: &'static str,
        /// The field.
        field: String,
        /// The value, shortened.
        value: String,
    },
}
