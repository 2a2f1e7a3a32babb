import type { AsideCoin, ChainBlock, Network } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'

interface Services {
  environment: Environment
}

/** Coins at platform addresses that are neither credited nor spent, with the owner of each address. */
export type OwnAside = (AsideCoin & { workspace_id: string; sub_account_id: string })[]

/**
 * Returns, for each block, the coins at platform addresses that are not spent, because of the tokens
 * that an output carries or of the token account that received them.
 * @param mayBeOurs filters addresses; it never removes a platform address
 */
export async function findAside(
  database: Queryable,
  network: Network,
  blocks: readonly ChainBlock[],
  mayBeOurs: (addresses: readonly string[]) => string[],
): Promise<OwnAside[]> {
  const shown = blocks.flatMap(({ aside }) => aside ?? [])
  const addresses =
    shown.length === 0 ? [] : [...new Set(mayBeOurs(shown.map(({ address }) => address)))]
  if (addresses.length === 0) return blocks.map(() => [])
  // Gas tanks belong to no sub-account. They are filled with the network's coin only, and what else
  // they receive is in no caller's list.
  const owners = new Map(
    (
      await database.query<{ address: string; workspace_id: string; sub_account_id: string }>(
        `select address, workspace_id, sub_account_id from chain_addresses
     where network = $1 and address = any($2) and sub_account_id is not null`,
        [network.code, addresses],
      )
    ).map(({ address, ...owner }) => [address, owner]),
  )
  return blocks.map(({ aside = [] }) =>
    aside.flatMap((coin) => {
      const owner = owners.get(coin.address)
      return owner ? [{ ...coin, ...owner }] : []
    }),
  )
}

/**
 * Stores the coins of one block, each once. A stored one is updated if its block differs or
 * its tokens were not known.
 */
export async function recordAside(
  services: Services,
  tx: Queryable,
  network: Network,
  block: ChainBlock,
  match: OwnAside,
): Promise<void> {
  if (match.length === 0) return
  // If a node returns an output index twice, the first entry counts.
  const coins = [...Map.groupBy(match, ({ txid, vout }) => `${txid}:${vout}`).values()].map(
    ([first]) => first as OwnAside[number],
  )
  const rows = coins.map(
    ({
      txid,
      vout,
      address,
      asset,
      amount,
      reason,
      token,
      account,
      workspace_id,
      sub_account_id,
    }) => ({
      asset,
      account,
      id: services.environment.uuid(),
      workspace_id,
      sub_account_id,
      txid,
      vout,
      address,
      value: amount.toString(),
      reason,
      category: token?.category,
      amount: token?.amount,
      capability: token?.nft?.capability,
      commitment: token?.nft?.commitment,
    }),
  )
  await tx.query(
    `insert into coins_aside as c (id, workspace_id, sub_account_id, network, txid, vout, address,
       value, reason, asset, account, token_category,
       token_amount, nft_capability, nft_commitment, block_height, block_hash, found_at)
     select r.id, r.workspace_id, r.sub_account_id, $1, r.txid, r.vout, r.address, r.value,
       r.reason, r.asset, r.account, r.category, r.amount, r.capability,
       r.commitment, $3, $4, $5
     from jsonb_to_recordset($2::jsonb) as r(id uuid, workspace_id uuid, sub_account_id uuid,
       txid text, vout integer, address text,
       value numeric, reason text, asset text, account text, category text, amount text, capability text, commitment text)
     on conflict (workspace_id, network, txid, vout) do update
       set sub_account_id = excluded.sub_account_id, address = excluded.address,
       value = excluded.value, reason = excluded.reason, asset = excluded.asset,
         account = excluded.account, token_category = excluded.token_category,
         token_amount = excluded.token_amount,
       nft_capability = excluded.nft_capability, nft_commitment = excluded.nft_commitment,
         block_height = excluded.block_height,
       block_hash = excluded.block_hash
     where c.block_hash <> excluded.block_hash
       or (c.token_category is null and excluded.token_category is not null)`,
    [network.code, JSON.stringify(rows), block.height, block.hash, tx.now()],
  )
}

/**
 * Deletes the outputs of blocks above a height, which a reorganisation has removed from the chain.
 */
export async function takeBackAside(
  tx: Queryable,
  { code }: Network,
  height: number,
): Promise<void> {
  await tx.query('delete from coins_aside where network = $1 and block_height > $2', [code, height])
}
