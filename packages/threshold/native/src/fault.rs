//! The error type of this addon. It is passed to JavaScript as the text `CODE|party|message`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The protocol ended without a result. It may be run again with a new session id.
    Abort,
    /// Proven cheating. Only the engine's `BanCounterparty` causes this code.
    Cheat,
    /// A message that cannot be read, or that belongs to another session, round or receiver.
    Malformed,
    /// A share, backup or key file that cannot be opened.
    Sealed,
    /// An invalid argument of the caller.
    BadArgument,
}

#[derive(Clone, Debug)]
pub struct Fault {
    pub code: Code,
    pub counterparty: Option<u8>,
    pub message: String,
}

pub type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub fn abort(message: impl Into<String>) -> Self {
        Self {
            code: Code::Abort,
            counterparty: None,
            message: message.into(),
        }
    }
    pub fn malformed(from: u8, message: impl Into<String>) -> Self {
        Self {
            code: Code::Malformed,
            counterparty: Some(from),
            message: message.into(),
        }
    }
    pub fn sealed(message: impl Into<String>) -> Self {
        Self {
            code: Code::Sealed,
            counterparty: None,
            message: message.into(),
        }
    }
    pub fn argument(message: impl Into<String>) -> Self {
        Self {
            code: Code::BadArgument,
            counterparty: None,
            message: message.into(),
        }
    }
    pub fn by(mut self, counterparty: u8) -> Self {
        self.counterparty = Some(counterparty);
        self
    }
}

impl From<Fault> for napi::Error {
    fn from(fault: Fault) -> Self {
        let code = match fault.code {
            Code::Abort => "ABORT",
            Code::Cheat => "CHEAT",
            Code::Malformed => "MALFORMED",
            Code::Sealed => "SEALED",
            Code::BadArgument => "BAD_ARGUMENT",
        };
        let party = fault
            .counterparty
            .map(|p| p.to_string())
            .unwrap_or_default();
        napi::Error::from_reason(format!("{code}|{party}|{}", fault.message))
    }
}
