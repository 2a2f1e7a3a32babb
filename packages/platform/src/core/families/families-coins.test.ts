import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import { blake2b } from '@noble/hashes/blake2.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  cardano,
  CHANGE_INDEX,
  CoinRefusal,
  decode,
  familyOf,
  pathOf,
  publicKeysBelow,
  utxo,
  type Asset,
  type Fetch,
} from '@custody/chains'
import type { Built, Chain, ChainContext, Fail, Prepared, Wait, Waiting } from '../engine/chain.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import type { ApiError } from '../errors.ts'
import { asRequestError } from '../../custody/assets/coin-refusal.ts'
import { cached } from './cached.ts'
import { rateSoon } from './coins/payable.ts'
import { connectCardano } from './cardano/index.ts'
import { connectUtxo } from './utxo/index.ts'
import {
  registry,
  useDatabase,
  DepositFixture,
  type Tenant,
} from '../../../testing/deposits-support.ts'

/**
 * Tests of the coin-based families' responses to the engine, on the real database with their real
 * clients. Only the endpoint's responses are scripted. The families write nothing, so the tests
 * write the engine's rows.
 */
const database = useDatabase()
const SECRET = createHash('sha256').update('tests of coins').digest()
type Coins = 'utxo' | 'cardano'
const FAMILIES: Coins[] = ['utxo', 'cardano']
const COIN = 20_000_000n
const AMOUNT = 5_000_000n
const SLOT = 200_000_000

class Fixture {
  readonly fixture: DepositFixture
  readonly family: Coins
  readonly chain: Chain
  readonly asset: Asset
  readonly own: string
  readonly change: string
  readonly to: string
  readonly at: ReturnType<typeof publicKeysBelow>
  tenant!: Tenant
  isUp = true
  requests: string[] = []
  readonly #made = new Map<string, string>()

  constructor(family: Coins) {
    this.family = family
    this.fixture = new DepositFixture(database.get(), family)
    const { network } = this.fixture
    const publicKey =
      network.curve === 'secp256k1'
        ? secp256k1.getPublicKey(SECRET, true)
        : ed25519.getPublicKey(SECRET)
    this.at = publicKeysBelow({ curve: network.curve, publicKey, chainCode: SECRET })
    const addressAt = (index: number) =>
      familyOf(network).address(network, this.at(pathOf(network, 1, index)))
    ;[this.own, this.change, this.to] = [addressAt(5), addressAt(CHANGE_INDEX), addressAt(900)]
    this.asset = registry.asset(network.native_asset) as Asset
    const context: ChainContext = {
      registry,
      database: database.get(),
      environment: this.fixture.services.environment,
      keys: { get: async () => ({ at: this.at }) },
      addresses: { omnibus: async () => this.own, change: async () => this.change },
    }
    const connect = family === 'utxo' ? connectUtxo : connectCardano
    this.chain = connect(context, network, {
      client: (make) => make({ url: 'http://chain.test' }, this.#fetch),
    })
  }

  get owner() {
    return {
      workspaceId: this.tenant.workspace,
      subAccountId: this.tenant.subAccount,
      subAccountIndex: 1,
    }
  }

  get wallet() {
    return this.tenant.wallets[this.asset.asset_name] as string
  }

  readonly #fetch: Fetch = async (url, init) => {
    if (!this.isUp) throw new Error('away')
    const answer = (value: unknown) => new Response(JSON.stringify(value), { status: 200 })
    if (this.family === 'utxo') {
      const { method, params } = JSON.parse(init.body as string) as {
        method: string
        params: [string]
      }
      this.requests.push(method)
      return answer({
        result: method === 'estimatesmartfee' ? { feerate: 0.0001 } : this.#made.get(params[0]),
      })
    }
    const path = new URL(url).pathname
    this.requests.push(path)
    const { feePerByte, feeConstant, coinsPerByte, transactionBytesMax, valueBytesMax } =
      cardano.PARAMETERS
    if (path === '/blocks/latest')
      return answer({
        height: 9,
        slot: SLOT,
        hash: '00'.repeat(32),
        previous_block: null,
        tx_count: 0,
      })
    if (path === '/epochs/latest/parameters') {
      return answer({
        min_fee_a: `${feePerByte}`,
        min_fee_b: `${feeConstant}`,
        coins_per_utxo_size: `${coinsPerByte}`,
        max_tx_size: `${transactionBytesMax}`,
        max_val_size: `${valueBytesMax}`,
      })
    }
    return answer({ cbor: `84${this.#made.get(path.split('/')[2] as string)}a0f5f6` })
  }

  async open(): Promise<this> {
    await this.fixture.open()
    this.tenant = await this.fixture.tenant('alice')
    return this
  }

  /**
   * Adds a coin to the wallet.
   * @returns the id of the transaction that created the coin; the scripted chain contains it
   */
  async coin(value = COIN, o: { spentBy?: string } = {}): Promise<string> {
    const { network } = this.fixture
    let txid: string
    if (this.family === 'utxo') {
      const script = utxo.scriptOf(network, this.own)
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64LE(value)
      const input = `0200000001${createHash('sha256').update(randomUUID()).digest('hex')}0000000000ffffffff01`
      const raw = Buffer.concat([
        Buffer.from(input, 'hex'),
        bytes,
        Buffer.from([script.length]),
        script,
        Buffer.alloc(4),
      ])
      txid = createHash('sha256')
        .update(createHash('sha256').update(raw).digest())
        .digest()
        .reverse()
        .toString('hex')
      this.#made.set(txid, raw.toString('hex'))
    } else {
      const before = createHash('sha256').update(randomUUID()).digest('hex')
      const coin = { txid: before, vout: 0, value, path: [], address: this.own, riders: null }
      const selection = {
        coins: [coin],
        fee: 200_000n,
        change: 0n,
        assets: new Map<string, bigint>(),
        size: 0,
      }
      const parts = {
        selection,
        to: this.own,
        amount: value,
        changeAddress: this.change,
        changePath: [],
        ttl: 9n,
      }
      const { bytes } = cardano.buildTransfer(network, {
        ...parts,
        previous: new Map([[before, '00']]),
      })
      txid = Buffer.from(blake2b(Buffer.from(bytes, 'hex'), { dkLen: 32 })).toString('hex')
      this.#made.set(txid, bytes)
    }
    await database.get().query(
      `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin,
        spendable, block_height, spent_by, workspace_id)
       values ($1, $2, 0, $3, $4, $5, 5, 'deposit', true, 1, $6, (select workspace_id from wallets
         where id = $4))`,
      [network.code, txid, this.own, this.wallet, value.toString(), o.spentBy ?? null],
    )
    return txid
  }

  async transfer(o: { feeRate?: string; amount?: bigint } = {}): Promise<TransactionRow> {
    const name = this.asset.asset_name
    return (await database.get().one<TransactionRow>(
      `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network,
         amount, fee_asset, source_type, source_id,
         destination_type, destination_id, state, status, plan, fee_rate)
       values ($1, 'WITHDRAWAL', $2, $3, $4, $5, $6, $7, $5, 'INTERNAL', $8, 'EXTERNAL', $9,
         'QUEUED', 'pending', '{}', $10)
       returning *`,
      [
        randomUUID(),
        this.tenant.workspace,
        this.tenant.subAccount,
        this.wallet,
        name,
        this.fixture.network.code,
        `${o.amount ?? AMOUNT}`,
        this.own,
        this.to,
        o.feeRate ?? null,
      ],
    ))!
  }

  async prepare(row: TransactionRow): Promise<Prepared> {
    const prepared = await this.chain.prepare({
      row,
      asset: this.asset,
      sweeps: false,
      amount: BigInt(row.amount),
      action: null,
    })
    assert.equal(prepared.kind, 'prepared')
    return prepared as Prepared
  }

  build(prepared: Prepared): Promise<Built | Wait | Fail> {
    return database.get().transaction((tx) => prepared.build(tx, 0n))
  }

  /** Inserts the chain transaction in the same form as the engine. */
  async write(
    row: TransactionRow,
    built: Built,
    state: 'BUILT' | 'SIGNED' | 'EXPIRED',
  ): Promise<Waiting> {
    const [id, hash] = [
      randomUUID(),
      state === 'BUILT' ? null : createHash('sha256').update(built.unsigned.bytes).digest('hex'),
    ]
    await database.get().query(
      `insert into chain_transactions (id, transaction_id, network, state, unsigned, fee_max, hash,
        attempt, workspace_id)
       values ($1, $2, $3, $4, $5, $6, $7, (select count(*) + 1 from chain_transactions
         where transaction_id = $2),
       (select workspace_id from transactions where id = $2))`,
      [id, row.id, row.network, state, JSON.stringify(built.unsigned), `${built.worst}`, hash],
    )
    for (const { txid, vout } of built.coins ?? []) {
      await database
        .get()
        .query(
          'update utxos set spent_by = $3 where txid = $1 and vout = $2 and spent_by is null',
          [txid, vout, id],
        )
    }
    return {
      id,
      unsigned: built.unsigned,
      fee_max: `${built.worst}`,
      nonce: null,
      hash: hash ?? '',
    }
  }
}

function isBuilt(outcome: { kind: string; reason?: string | null }): asserts outcome is Built {
  assert.equal(outcome.kind, 'built', outcome.reason ?? outcome.kind)
}

for (const family of FAMILIES) {
  test(`${family}: a built transaction costs the reserved fee, and spends its planned inputs`, async () => {
    const fixture = await new Fixture(family).open()
    await fixture.coin()
    const built = await fixture.build(await fixture.prepare(await fixture.transfer()))
    isBuilt(built)
    const decoded = decode(registry, built.unsigned, fixture.at)
    assert.deepEqual(decoded.payments, [{ address: fixture.to, amount: AMOUNT, tag: null }])
    assert.equal(decoded.change?.address, fixture.change)
    const hold = {
      wallet: fixture.wallet,
      asset: fixture.asset,
      amount: built.worst,
      noted: 'fee_reserve',
      reserve: 0n,
    }
    assert.deepEqual([built.worst, built.fee, built.hold], [decoded.fee_max, decoded.fee_max, hold])
    assert.deepEqual(
      built.coins?.map(({ txid, vout }) => `${txid}:${vout}`),
      decoded.consumes,
    )
    assert.deepEqual(
      fixture.chain.coins?.of(built.unsigned),
      built.coins?.map((coin) => ({ ...coin, value: COIN })),
    )
    assert.equal(built.validUntil, family === 'cardano' ? SLOT + cardano.SLOTS_TO_LIVE : undefined)
    assert.equal(built.validUntil, decoded.valid_until)
    assert.deepEqual(
      await database.get().query('select id from chain_transactions'),
      [],
      'a family writes nothing',
    )
  })

  test(`${family}: plans a transfer again if another transfer spent its planned inputs`, async () => {
    const fixture = await new Fixture(family).open()
    const [first, row, other] = [
      await fixture.coin(),
      await fixture.transfer(),
      await fixture.transfer(),
    ]
    const prepared = await fixture.prepare(row)
    const built = await fixture.build(await fixture.prepare(other))
    isBuilt(built)
    assert.deepEqual(built.coins, [{ txid: first, vout: 0 }])
    await fixture.write(other, built, 'SIGNED')
    const second = await fixture.coin()
    assert.deepEqual(await fixture.build(prepared), {
      kind: 'wait',
      code: null,
      reason: null,
      inMs: 50,
    })
    const again = await fixture.build(await fixture.prepare(row))
    isBuilt(again)
    assert.deepEqual(again.coins, [{ txid: second, vout: 0 }])
  })

  test(`${family}: waits for change only if the transfer that creates it is being signed`, async () => {
    const fixture = await new Fixture(family).open()
    await fixture.coin()
    const [row, other] = [await fixture.transfer(), await fixture.transfer()]
    const built = await fixture.build(await fixture.prepare(other))
    isBuilt(built)
    const waiting = await fixture.write(other, built, 'BUILT')
    const prepared = await fixture.prepare(row)
    assert.deepEqual(await fixture.build(prepared), {
      kind: 'wait',
      code: 'COINS',
      reason: 'it waits for the change of an earlier transfer',
      inMs: 2000,
    })
    await database
      .get()
      .query(`update chain_transactions set state = 'CONFIRMED' where id = $1`, [waiting.id])
    const outcome = await fixture.build(prepared)
    assert.equal(outcome.kind, 'fail')
    assert.match(
      (outcome as Fail).reason,
      /^the wallet's coins do not cover the amount and a network fee at this rate: .* exceed the available coins by /,
    )
  })

  test(`${family}: waits for change of a replaced transfer until one of the two transfers is final`, async () => {
    const fixture = await new Fixture(family).open()
    const txid = await fixture.coin()
    const row = await fixture.transfer()
    await database
      .get()
      .query(
        `update utxos set origin = 'change', spendable = false, contested = true where txid = $1`,
        [txid],
      )
    assert.deepEqual(await fixture.build(await fixture.prepare(row)), {
      kind: 'wait',
      code: 'COINS',
      reason: 'it waits for the change of an earlier transfer',
      inMs: 2000,
    })
    await database
      .get()
      .query(
        'update utxos set spendable = true, contested = false, block_height = 1 where txid = $1',
        [txid],
      )
    isBuilt(await fixture.build(await fixture.prepare(row)))
    await database.get().query('delete from utxos where txid = $1', [txid])
    assert.equal((await fixture.build(await fixture.prepare(row))).kind, 'fail')
  })

  test(`${family}: reads our own transactions without querying the chain`, async () => {
    const fixture = await new Fixture(family).open()
    const [txid, row] = [await fixture.coin(), await fixture.transfer()]
    const shown = await fixture.chain.coins?.previous(txid)
    const signed = family === 'utxo' ? shown : `84${shown}a0f5f6`
    fixture.requests = []
    assert.equal(await fixture.chain.coins?.previous(txid, signed), shown)
    await database.get().query(
      `insert into chain_transactions (id, transaction_id, network, state, unsigned, fee_max, hash,
        signed, workspace_id)
       values ($1, $2, $3, 'SIGNED', '{}', 1, $4, $5, (select workspace_id from transactions
         where id = $2))`,
      [randomUUID(), row.id, row.network, txid, signed],
    )
    assert.equal(await fixture.chain.coins?.previous(txid), shown)
    assert.deepEqual(fixture.requests, [])
  })

  test(`${family}: estimates a fee from the wallet’s inputs, a typical transfer, or while offline`, async () => {
    const fixture = await new Fixture(family).open()
    const { chain, owner, asset, to, wallet: walletId } = fixture
    const question = { owner, asset, rate: family === 'utxo' ? 10_000n : 44n, to: null }
    const typical = await chain.quote({ ...question, amount: AMOUNT })
    assert.equal(typical.basis, 'typical')
    await fixture.coin()
    const quoted = await chain.quote({ ...question, amount: AMOUNT })
    assert.equal(quoted.basis, 'wallet')
    assert.deepEqual(await chain.quote({ ...question, amount: null }), typical)
    assert.deepEqual(await chain.quote({ ...question, amount: 1n }), typical, 'dust')
    const transfer = { owner, walletId, asset, to, amount: AMOUNT, feeRate: null, level: null }
    const { fee, reserve } = await chain.estimate(transfer)
    assert.equal(fee, reserve)
    const built = await fixture.build(await fixture.prepare(await fixture.transfer()))
    isBuilt(built)
    assert.equal(fee, built.worst)
    assert.ok((await chain.estimate({ ...transfer, amount: COIN })).fee > 0n, 'coins may be bound')
    const away = await new Fixture(family).open()
    await away.coin()
    away.isUp = false
    const blind = await away.chain.estimate({
      ...transfer,
      owner: away.owner,
      walletId: away.wallet,
    })
    assert.equal(blind.fee, family === 'utxo' ? 2n * fee : fee)
    assert.equal(away.chain.ratesReadAt(), null)
    await assert.rejects(away.chain.rates(asset))
  })

  test(`${family}: each reason why coins cannot be selected has a result in every step`, async () => {
    const fixture = await new Fixture(family).open()
    const { chain, owner, asset, to, wallet: walletId } = fixture
    const question = { owner, asset, rate: family === 'utxo' ? 10_000n : 44n, to: null }
    const estimate = (amount: bigint) =>
      chain.estimate({ owner, walletId, asset, to, amount, feeRate: null, level: null })
    const outcome = async (amount: bigint) =>
      fixture.build(await fixture.prepare(await fixture.transfer({ amount })))
    const small = 1_500_000n
    for (let at = 0; at < 450; at++) await fixture.coin(small)
    const whole = 450n * small
    // INSUFFICIENT and DUST: the fee of a typical transfer, and a failure.
    for (const amount of [2n * whole, 1n]) {
      assert.ok((await estimate(amount)).fee > 0n)
      assert.equal((await chain.quote({ ...question, amount })).basis, 'typical')
      assert.equal((await outcome(amount)).kind, 'fail')
    }
    // TOO_MANY_INPUTS: an error with the largest amount that is possible, and a wait that ends.
    const amount = whole - whole / 50n
    let most = 0n
    const isRefused = (error: unknown) => {
      assert.ok(error instanceof CoinRefusal, String(error))
      assert.equal(error.code, 'TOO_MANY_INPUTS')
      assert.match(error.message, /^requires (more than )?\d+ coins of the wallet/)
      most = error.most
      const asRequest = asRequestError(error, asset) as ApiError
      assert.deepEqual(
        [asRequest.status, asRequest.code, asRequest.field],
        [400, 'CONSOLIDATE_FIRST', 'amount'],
      )
      assert.match(asRequest.message, /^amount: requires .*; one transfer can pay up to [\d.]+ /)
      return true
    }
    await assert.rejects(estimate(amount), isRefused)
    await assert.rejects(chain.quote({ ...question, amount }), isRefused)
    assert.ok(most > 0n && most < amount)
    const waiting = await outcome(amount)
    assert.deepEqual([waiting.kind, 'code' in waiting && waiting.code], ['wait', 'COINS'])
    assert.equal((await estimate(most)).fee > 0n, true, 'the stated amount is possible')
    await fixture.coin(whole)
    assert.equal((await outcome(amount)).kind, 'built', 'a larger coin has arrived')
  })

  test(`${family}: refuses an amount below the chain's minimum, and states the minimum`, async () => {
    const fixture = new Fixture(family)
    const [least, reason] =
      family === 'utxo'
        ? [294n, 'must be at least 0.00000294 BTC, the dust limit of this kind of address']
        : [
            849_070n,
            'must be at least 0.84907 ADA, the minimum that the chain requires in an output to this type of address',
          ]
    const payment = { to: fixture.to, tag: null, asset: fixture.asset }
    assert.deepEqual(fixture.chain.unfit({ ...payment, amount: least - 1n }), {
      field: 'amount',
      reason,
    })
    assert.equal(fixture.chain.unfit({ ...payment, amount: least }), null)
  })
}

test('cardano: an expired transfer is rebuilt with the same inputs, and fails if they are spent', async () => {
  const fixture = await new Fixture('cardano').open()
  const row = await fixture.transfer()
  const first = await fixture.coin(AMOUNT * 2n)
  const built = await fixture.build(await fixture.prepare(row))
  isBuilt(built)
  await fixture.write(row, built, 'EXPIRED')
  await fixture.coin(COIN * 10n)
  const again = await fixture.build(await fixture.prepare(row))
  isBuilt(again)
  assert.deepEqual(again.coins, [{ txid: first, vout: 0 }])
  const prepared = await fixture.prepare(row)
  await database.get().query('update utxos set spendable = false where txid = $1', [first])
  assert.deepEqual(await fixture.build(prepared), {
    kind: 'fail',
    reason: 'it expired, and its coins are no longer on the chain',
  })
})

test('cardano: keeps the minimum lovelace with the tokens of a wallet', async () => {
  const fixture = await new Fixture('cardano').open()
  assert.equal(await fixture.chain.reserveOf(fixture.tenant.omnibus, fixture.asset), 0n)
  const riders = { assets: { [`${'ab'.repeat(28)}00`]: '1' }, script_bytes: 0 }
  const txid = await fixture.coin()
  await database
    .get()
    .query('update utxos set riders = $2 where txid = $1', [txid, JSON.stringify(riders)])
  assert.equal(
    await fixture.chain.reserveOf(fixture.tenant.omnibus, fixture.asset),
    cardano.keptWith([{ riders }]),
  )
})

test('utxo: a replacement spends the same inputs, and its fee reservation never decreases', async () => {
  const fixture = await new Fixture('utxo').open()
  const first = await fixture.coin()
  const row = await fixture.transfer({ feeRate: '2' })
  const built = await fixture.build(await fixture.prepare(row))
  isBuilt(built)
  const waiting = [await fixture.write(row, built, 'SIGNED')]
  const replaceable = fixture.chain.replaceable
  assert.ok(replaceable)
  assert.equal(await replaceable.marketPaysMore(row, waiting[0] as Waiting), true)
  const least = await replaceable.leastRate(row, waiting)
  assert.equal(least, 3000n, 'its own rate and the floor')
  const replace = async (wanted: Parameters<typeof replaceable.prepare>[2], plan = {}) => {
    const prepared = await replaceable.prepare(
      { ...row, plan },
      fixture.asset,
      wanted,
      waiting,
      false,
    )
    return prepared.kind === 'prepared' ? fixture.build(prepared) : prepared
  }
  const refused = await replace({ kind: 'SPEED_UP', feeRate: '2.999', level: null })
  assert.deepEqual(refused, {
    kind: 'fail',
    reason: 'its fee_rate is no longer high enough to replace the waiting transaction',
  })
  const never = await replace({ kind: 'AUTO', feeRate: null, level: null })
  assert.deepEqual(never, {
    kind: 'fail',
    reason: 'the fee_rate of the transfer allows no higher fee',
  })
  const faster = await replace(
    { kind: 'SPEED_UP', feeRate: null, level: 'low' },
    { fee_reserve: '1' },
  )
  isBuilt(faster)
  assert.deepEqual([faster.coins, faster.hold?.amount], [[{ txid: first, vout: 0 }], faster.worst])
  assert.equal(faster.worst, decode(registry, faster.unsigned, fixture.at).fee_max)
  const held = await replace(
    { kind: 'SPEED_UP', feeRate: '3', level: null },
    { fee_reserve: '1000000' },
  )
  isBuilt(held)
  assert.equal(held.hold?.amount, 1_000_000n)
  const back = await replace({ kind: 'CANCEL', feeRate: null, level: null })
  isBuilt(back)
  const { payments } = decode(registry, back.unsigned, fixture.at)
  assert.deepEqual(
    [back.hold, payments.map(({ address }) => address)],
    [undefined, [fixture.change]],
  )
  assert.equal(payments[0]?.amount, COIN - back.worst)
  const prepared = (await replaceable.prepare(
    row,
    fixture.asset,
    { kind: 'CANCEL', feeRate: null, level: null },
    waiting,
    false,
  )) as Prepared
  const next = await fixture.transfer()
  const spender = await fixture.write(next, { ...built, coins: [] }, 'BUILT')
  await database.get().query(
    `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin,
      spendable, spent_by, workspace_id)
     values ('BTC', $1, 1, $2, $3, 1, 1, 'change', true, $4, (select workspace_id from wallets
       where id = $3))`,
    [waiting[0]?.hash, fixture.change, fixture.wallet, spender.id],
  )
  assert.deepEqual(await fixture.build(prepared), {
    kind: 'fail',
    reason: `transfer ${next.id} already spends its change`,
  })
})

test('a response is cached, requested once, and keeps its time after a failed request', async () => {
  let [now, requests] = [5, 0]
  const answer = cached(
    async () => {
      if (++requests > 1) throw new Error('away')
      return requests
    },
    10,
    () => now,
  )
  assert.deepEqual([answer.readAt(), answer.known(100)], [null, null])
  assert.deepEqual(await Promise.all([answer(), answer()]), [1, 1])
  now = 14
  assert.deepEqual([await answer(), answer.readAt()], [1, 5])
  now = 15
  await assert.rejects(answer())
  assert.deepEqual([requests, answer.readAt()], [2, 5])
  assert.deepEqual([answer.known(10), answer.known(9)], [1, null])
})

test('a fee rate of the last minutes is shown without waiting for an endpoint that hangs', async () => {
  let now = 0
  let hangs = false
  const levels = { low: 1n, medium: 2n, high: 3n }
  const rates = cached(
    () => (hangs ? new Promise<typeof levels>(() => undefined) : Promise.resolve(levels)),
    10,
    () => now,
  )
  let waits = 0
  const sleep = () => {
    waits++
    return hangs ? Promise.resolve() : new Promise<void>(() => undefined)
  }
  const shown = () => rateSoon({ context: { environment: { sleep } }, rates })
  assert.equal(await shown(), 2n)
  hangs = true
  waits = 0
  now = 600_000
  assert.deepEqual([await shown(), waits], [2n, 0])
  now++
  assert.deepEqual([await shown(), waits], [null, 1])
})
