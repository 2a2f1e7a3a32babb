/**
 * Assets of the registry (`packages/chains/data/registry.json`), which a test holds to it; a
 * sub-account has one wallet for each.
 */
export const ASSETS_MAX = 1000
/** Elements of a list that comes from an exchange or from payers: more are left out. */
export const LIST_MAX = 10_000
/**
 * Exchanges that ccxt has, and what it says of one (`data/exchanges.json`, which a test holds to
 * it).
 */
export const EXCHANGES_MAX = 500
/** Characters of a sentence for people: of an error's message, or a reason. */
export const MESSAGE_MAX = 10_000
/** The signer nodes. */
export const NODES = 3
/** Hashes that a signer node names in one answer (`packages/signer/src/api/void.ts`). */
export const NAMED_MAX = 1000
