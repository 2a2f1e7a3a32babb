/**
 * Maximum number of assets in the registry (`packages/chains/data/registry.json`), which a test
 * checks; a sub-account has at most one wallet for each.
 */
export const ASSETS_MAX = 1000
/**
 * Maximum number of elements of a list that comes from an exchange or from payers; further elements
 * are left out.
 */
export const LIST_MAX = 10_000
/**
 * Maximum number of exchanges in ccxt, and of features of one exchange (`data/exchanges.json`,
 * which a test checks).
 */
export const EXCHANGES_MAX = 500
/** Maximum length of an error message or a reason, in characters. */
export const MESSAGE_MAX = 10_000
/** Number of signer nodes. */
export const NODES = 3
/**
 * Maximum number of hashes that a signer node returns in one response
 * (`packages/signer/src/api/void.ts`).
 */
export const NAMED_MAX = 1000
/** Maximum length of an ID: a UUID, `inv_` with 32 digits, or the number of a ledger entry. */
export const ID_MAX = 64
/** Maximum length of a single word: a code, ticker, state, or a list that may grow. */
export const WORD_MAX = 100
/** Maximum length of a name, label or title that people read. */
export const NAME_MAX = 200
/** Maximum length of an email address (RFC 5321). */
export const EMAIL_MAX = 320
/** Maximum length of an address of a chain, or of an ID that an exchange assigns. */
export const ADDRESS_MAX = 500
/** Maximum length of a memo, and of an RSA modulus in base64. */
export const MEMO_MAX = 1000
/** Maximum length of a hash in hexadecimal or base64. */
export const HASH_MAX = 128
/** Maximum length of a key, nonce or signature in hexadecimal or base64. */
export const KEY_MAX = 256
/** Maximum length of a commitment of a threshold key. */
export const COMMITMENT_MAX = 2048
/** Maximum length of a URL. */
export const URL_MAX = 4096
/** Maximum length of a time or date in ISO 8601. */
export const TIME_MAX = 30
/** Maximum length of signed JSON. */
export const SIGNED_MAX = 16 * 1024 * 1024
/** Maximum of a 32-bit integer of the database, and of an index of an output. */
export const INT_MAX = 2_147_483_647
export const UINT_MAX = 4_294_967_295
