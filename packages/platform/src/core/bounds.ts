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
