import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  familyOf,
  pathOf,
  publicKeysBelow,
  utxo,
  type FamilyName,
  type Network,
} from '@custody/chains'
import { post } from '../ledger/post.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { runStep } from '../engine/run.ts'
import { setChains } from '../../../testing/chains/chain-fixture.ts'
import { useDatabase, DepositFixture } from '../../../testing/deposits-support.ts'

/**
 * Tests that every family's builder refuses a transaction whose fee exceeds the signer nodes' cap,
 * and that the part of a fee beyond the reservation is booked under the id of the built
 * transaction.
 */
const database = useDatabase()
const SECRET = createHash('sha256').update('tests of building').digest()
const BLOCKHASH = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
const HELD = 10n ** 12n
const RATES = { low: 100_000n, medium: 100_000n, high: 100_000n }
const DESTINATIONS: Partial<Record<FamilyName, string>> = {
  evm: `0x${'ab'.repeat(20)}`,
  tron: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  xrp: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
  stellar: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
  solana: BLOCKHASH,
}

/** Returns a previous transaction with one output. */
function coin(script: Uint8Array): { txid: string; raw: string } {
  const value = Buffer.alloc(8)
  value.writeBigInt64LE(HELD)
  const raw = Buffer.concat([
    Buffer.from(`0200000001${'00'.repeat(36)}00ffffffff01`, 'hex'),
    value,
    Buffer.from([script.length]),
    script,
    Buffer.alloc(4),
  ])
  const hash = createHash('sha256').update(createHash('sha256').update(raw).digest()).digest()
  return { txid: Buffer.from(hash.reverse()).toString('hex'), raw: raw.toString('hex') }
}

async function transfer(family: FamilyName, feeCap?: string) {
  const fixture = new DepositFixture(database.get(), family)
  await fixture.open()
  const alice = await fixture.tenant('alice')
  const [asset] = fixture.assets
  const network: Network = {
    ...fixture.network,
    ...(feeCap === undefined ? {} : { fee_cap: feeCap }),
  }
  const publicKey =
    network.curve === 'secp256k1'
      ? secp256k1.getPublicKey(SECRET, true)
      : ed25519.getPublicKey(SECRET)
  const at = publicKeysBelow({ curve: network.curve, publicKey, chainCode: SECRET })
  const own = familyOf(network).address(network, at(pathOf(network, 1, 0)))
  const to = DESTINATIONS[family] ?? familyOf(network).address(network, at(pathOf(network, 1, 9)))
  const client: Record<string, unknown> = {
    account: async () => ({
      balance: HELD,
      sequence: 5n,
      reserve: 0n,
      requiresTag: false,
      closed: false,
      wallet: true,
      ...TRON_ACCOUNT,
    }),
    activation: async () => 1n,
    validUntil: async () => 1_900_000_000,
    rent: async () => 890_880n,
    lifetime: async () => ({ blockhash: BLOCKHASH, validUntil: 1000 }),
    gasLimit: async () => 21_000n,
    isContract: async () => false,
    isActivated: async () => true,
    parameters: async () => PARAMETERS,
  }
  if (family === 'utxo') {
    const { txid, raw } = coin(utxo.scriptOf(network, own))
    client['rawTransaction'] = async () => raw
    await addCoin(network, txid)
  }
  if (family === 'cardano') {
    const body = cardanoBody(own)
    client['transactionBody'] = async () => body
    const { blake2b } = await import('@noble/hashes/blake2.js')
    await addCoin(
      network,
      Buffer.from(blake2b(Buffer.from(body, 'hex'), { dkLen: 32 })).toString('hex'),
    )
  }
  async function addCoin({ code }: Network, txid: string): Promise<void> {
    await database.get().query(
      `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin,
         spendable, block_height, workspace_id)
         values ($1, $2, 0, $3, $4, $5, 0, 'deposit', true, 1, (select workspace_id from wallets
           where id = $4))`,
      [code, txid, own, alice.wallets[asset], HELD.toString()],
    )
  }
  const tron = {
    energySun: 100n,
    bandwidthSun: 1000n,
    createAccountSun: 1_000_000n,
    createAccountFeeSun: 100_000n,
    unfreezeDelayDays: 14,
    maxFeeLimit: 15_000_000_000n,
  }
  const fee = { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1n }
  Object.assign(client, {
    feeRates: async () =>
      family === 'evm'
        ? { low: fee, medium: fee, high: fee }
        : family === 'xrp' || family === 'stellar'
          ? { low: 12n, medium: 12n, high: 12n }
          : RATES,
    unitPrices: async () => RATES,
    ...(family === 'tron' ? { parameters: async () => tron } : {}),
  })
  Object.assign(fixture.services, {
    keys: { get: async () => ({ curve: network.curve, publicKey, chainCode: SECRET, at }) },
  })
  setChains(fixture.services, { [network.code]: client }, { [network.code]: network })
  await database.admin().query('update chain_addresses set path_index = 8 where path_index = 0')
  await database.get().query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
       values ($1, $2, $3, $4, 0, 'deposit')`,
    [network.code, own, alice.workspace, alice.subAccount],
  )
  const id = randomUUID()
  const scope = { workspace: alice.workspace, wallet: alice.wallets[asset] as string, asset }
  await database.get().transaction(async (tx) => {
    await post(tx, 'deposit', id, [
      { workspace: alice.workspace, asset, kind: 'chain', amount: -HELD },
      { ...scope, kind: 'available', amount: HELD },
    ])
    await post(tx, 'reserve', id, [
      { ...scope, kind: 'available', amount: -5_000_001n },
      { ...scope, kind: 'reserved', amount: 5_000_001n },
    ])
    await tx.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
         amount, fee_asset, source_type, source_id,
         destination_type, destination_id, state, status, plan)
       values ($1, 'WITHDRAWAL', $2, $3, $4, $5, $6, 5000000, $5, 'INTERNAL', $7, 'EXTERNAL', $8,
         'QUEUED', 'pending', '{"fee_reserve":"1"}')`,
      [id, alice.workspace, alice.subAccount, alice.wallets[asset], asset, network.code, own, to],
    )
  })
  const row = await database.get().one<TransactionRow>(
    `update transactions set lease_token = gen_random_uuid(), attempts = 1 where id = $1
        returning *`,
    [id],
  )
  await runStep(fixture.services, row as TransactionRow)
  const after = (await database
    .get()
    .one<TransactionRow>('select * from transactions where id = $1', [id])) as TransactionRow
  const built = await database
    .get()
    .one<{ id: string; fee_max: string }>(
      'select id, fee_max::text from chain_transactions where transaction_id = $1',
      [id],
    )
  const adjusted = await database
    .get()
    .query<{ reference: string }>(
      `select reference from ledger_entries where kind = 'reserve-adjust'`,
    )
  return { after, built, adjusted }
}

const TRON_ACCOUNT = {
  staked: { ENERGY: 0n, BANDWIDTH: 0n },
  unfreezing: [],
  energy: 0n,
  bandwidth: 0n,
}
const PARAMETERS = {
  feePerByte: 44n,
  feeConstant: 155_381n,
  coinsPerByte: 4310n,
  transactionBytesMax: 16_384,
  valueBytesMax: 5000,
}
/** Returns a transaction body with one output, in the format from before datums. */
function cardanoBody(address: string): string {
  const letters = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
  const words = Array.from(address.slice(address.lastIndexOf('1') + 1, -6)).map((letter) =>
    letters.indexOf(letter),
  )
  const bits = words.map((word) => word.toString(2).padStart(5, '0')).join('')
  const bytes = Buffer.from(
    bits
      .slice(0, bits.length - (bits.length % 8))
      .match(/.{8}/g)!
      .map((byte) => Number.parseInt(byte, 2)),
  )
  const [input, length, value] = [
    `825820${'11'.repeat(32)}00`,
    bytes.length.toString(16),
    HELD.toString(16).padStart(16, '0'),
  ]
  return `a40081${input}01818258${length}${bytes.toString('hex')}1b${value}021a00030d40031a08f0d180`
}

const RESERVING: FamilyName[] = ['utxo', 'cardano', 'xrp', 'stellar', 'solana']
for (const family of [...RESERVING, 'evm', 'tron'] as FamilyName[]) {
  test(`${family}: a transfer whose fee exceeds the cap is refused before anything is built`, async () => {
    const { after, built, adjusted } = await transfer(family, '1')
    assert.deepEqual(
      [after.state, after.last_error, built, adjusted],
      ['VOIDING', null, undefined, []],
    )
    assert.match(after.plan['reason'] ?? '', /exceeds the cap of/)
  })
}

for (const family of RESERVING) {
  test(`${family}: a fee above the reservation is booked with the id of the built transaction`, async () => {
    const { after, built, adjusted } = await transfer(family)
    assert.deepEqual([after.state, after.last_error], ['SIGNING', null])
    assert.deepEqual(adjusted, [{ reference: built?.id }])
  })
}
