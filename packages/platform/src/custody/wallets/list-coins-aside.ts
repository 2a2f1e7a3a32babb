import { formatAmount, type Asset, type Registry } from '@custody/chains'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  COMMITMENT_MAX,
  HASH_MAX,
  ID_MAX,
  KEY_MAX,
  UINT_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import { assertKnownAsset } from '../assets/find-asset.ts'
import { exact } from '../../core/decimals.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, integer, LIMIT_MAX } from '../../core/http/schemas.ts'
import { after, pageFields, pageOf, readCursor } from '../../core/time-cursor.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

const coinShape = z
  .object({
    id: z.string().max(ID_MAX),
    asset: z
      .string()
      .max(WORD_MAX)
      .meta({
        description: 'The asset in which `amount` is denominated',
        examples: ['BCH'],
      }),
    network: z
      .string()
      .max(WORD_MAX)
      .meta({ examples: ['BCH'] }),
    txid: z
      .string()
      .max(HASH_MAX)
      .meta({
        description: 'The transaction that created the output or paid the tokens',
        examples: ['5f1c8a7d0e3b49d2a6c4f7b8e9d0c1a2b3f4e5d6c7a8b9f0e1d2c3b4a5f6e7d8'],
      }),
    vout: z.int().min(0).max(UINT_MAX).meta({
      description:
        'Index of the output in its transaction; of the token account among its accounts',
    }),
    address: z
      .string()
      .max(ADDRESS_MAX)
      .meta({
        description: 'Address of the sub-account that received them',
        examples: ['bitcoincash:qpm2qsznhks23z7629mms6s0cwef74vcwvy22gdx6a'],
      }),
    amount: z.number().meta({ description: 'Amount of `asset`. It is not part of any balance' }),
    reason: z.enum(['CASH_TOKENS', 'TOKEN_ACCOUNT']).meta({
      description:
        'Why they are not spent. CASH_TOKENS: the output carries CashTokens, which a transfer would burn. TOKEN_ACCOUNT: the tokens are in another token account of the address than its usual one',
    }),
    account: z
      .string()
      .max(ADDRESS_MAX)
      .nullable()
      .meta({ description: 'Solana: the token account that received the tokens' }),
    token: z
      .object({
        category: z
          .string()
          .max(KEY_MAX)
          .meta({
            description: 'Token category, 64 hexadecimal digits',
            examples: ['89cad9e3e34280eb1e8bc420542c00a7fcc01002b663dbf7f38bceddf80e680c'],
          }),
        amount: z
          .string()
          .max(WORD_MAX)
          .meta({
            description: 'Fungible tokens in base units, as decimal digits; `0` if there are none',
            examples: ['150000000'],
          }),
        nft: z
          .object({
            capability: z.enum(['none', 'mutable', 'minting']),
            commitment: z
              .string()
              .max(COMMITMENT_MAX)
              .meta({ description: 'In hexadecimal digits; may be empty', examples: ['0a'] }),
          })
          .nullable()
          .meta({ description: 'The non-fungible token; null: there is none' }),
      })
      .nullable()
      .meta({ description: 'Null if the node did not return the tokens in a valid form' }),
    block_height: z
      .int()
      .min(0)
      .meta({ examples: [912345] }),
    block_hash: z
      .string()
      .max(HASH_MAX)
      .meta({ examples: ['000000000000000000d1c2b3a4f5e6d7c8b9a0f1e2d3c4b5a6f7e8d9c0b1a2f3'] }),
    found_at: z.string().meta({ description: 'When the scanner read its block' }),
  })
  .meta({ id: 'CoinAside' })

interface Row {
  id: string
  network: string
  txid: string
  vout: number
  address: string
  value: string
  reason: string
  asset: string | null
  account: string | null
  token_category: string | null
  token_amount: string | null
  nft_capability: string | null
  nft_commitment: string | null
  block_height: string
  block_hash: string
  found_at: Date
}

/**
 * Lists coins at the sub-account's addresses that are neither credited nor ever spent, newest
 * first.
 */
export const listCoinsAside = endpoint({
  id: 'listCoinsAside',
  tag: 'Wallets',
  description:
    'Returns coins at addresses of the sub-account that are not part of any balance and are never spent: outputs with CashTokens (Bitcoin Cash), and tokens that were paid to another token account of an address than its usual one (Solana). Newest first; to continue, pass `next` of the response as `after`. They are listed when their block is scanned, and removed from the list when a reorganisation removes that block.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/coins-aside',
  summary: 'List coins that are not spent',
  access: 'read',
  query: z.strictObject({
    asset: assetName.optional(),
    network: z
      .string()
      .min(1)
      .max(50)
      .optional()
      .meta({ description: 'Code of a network', examples: ['BCH'] }),
    after: after('outputs'),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of outputs in the response; by default 100',
    ).default(100),
  }),
  response: z.object({
    data: z.array(coinShape).max(LIMIT_MAX),
    ...pageFields,
  }),
  async handler({ caller, query: { asset, network, after: cursor, limit } }, services: Services) {
    assertKnownAsset(services, asset)
    if (network !== undefined && !services.registry.network(network)) {
      throw new ApiError('INVALID_REQUEST', `network: ${network} is unknown; see GET /assets`, {
        field: 'network',
      })
    }
    const of = asset === undefined ? undefined : services.registry.asset(asset)
    const networks = services.registry.networks
      .map(({ code }) => code)
      .filter((code) => (network ?? code) === code && (of?.network ?? code) === code)
    const { at, id } = readCursor(cursor)
    const read = await services.database.query<Row>(
      `select id, network, txid, vout, address, value::text, reason, asset, account,
         token_category, token_amount,
         nft_capability, nft_commitment,
         block_height::text, block_hash, found_at
       from coins_aside
       where workspace_id = $1 and sub_account_id = $2 and network = any($3)
         and ($4::timestamptz is null or (found_at, id) < ($4, $5::uuid))
         and ($7::text is null or coalesce(asset, '') = $7)
       order by found_at desc, id desc limit $6`,
      [caller.workspaceId, caller.subAccountId, networks, at, id, limit + 1, tokenFilter(of)],
    )
    const { rows, page } = pageOf(read, limit, (row) => ({ at: row.found_at, id: row.id }))
    return {
      body: {
        data: rows.map((row) => present(services, row)),
        ...page,
      },
    }
  },
})

/** Returns the stored `asset` to select: null for all, empty for the coin of a network. */
const tokenFilter = (asset: Asset | undefined): string | null =>
  asset === undefined ? null : asset.type === 'native' ? '' : asset.asset_name

function present({ registry }: Services, row: Row) {
  const native = registry.network(row.network)?.native_asset ?? ''
  const asset = registry.asset(row.asset ?? native) as Asset
  return {
    id: row.id,
    asset: asset.asset_name,
    network: row.network,
    txid: row.txid,
    vout: row.vout,
    address: row.address,
    amount: exact(formatAmount(BigInt(row.value), asset.decimals)),
    reason: row.reason,
    account: row.account,
    token:
      row.token_category === null
        ? null
        : {
            category: row.token_category,
            amount: row.token_amount,
            nft:
              row.nft_capability === null
                ? null
                : { capability: row.nft_capability, commitment: row.nft_commitment },
          },
    block_height: Number(row.block_height),
    block_hash: row.block_hash,
    found_at: row.found_at.toISOString(),
  }
}
