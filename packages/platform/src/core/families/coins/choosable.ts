/**
 * SQL condition on `utxos u`: the caller has frozen the coin. A row of `coin_settings` has the freeze, so
 * that it survives a reorganisation that removes the coin and brings it back.
 */
export const IS_FROZEN = `exists (select 1 from coin_settings s where s.workspace_id = u.workspace_id
  and s.network = u.network and s.txid = u.txid and s.vout = u.vout and s.frozen)`

/**
 * SQL condition on `utxos u`: the coin may be chosen for a transaction. Every choice of coins, of every
 * family, uses it; a family can add conditions of its own.
 */
export const MAY_BE_CHOSEN = `u.spent_by is null and u.spendable and not ${IS_FROZEN}`
