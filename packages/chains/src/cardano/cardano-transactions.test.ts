// Cardano: coin selection, bodies, signatures and fees, verified with cardano-serialization-lib and
// cquisitor.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  check_block_or_tx_signatures,
  extract_hashes_from_transaction_js,
} from '@cardananium/cquisitor-lib'
import {
  BigNum,
  FixedTransaction,
  LinearFee,
  min_ada_for_output,
  min_fee,
  DataCost,
  Transaction,
  type TransactionBody,
} from '@emurgo/cardano-serialization-lib-nodejs'
import * as fc from '../../../../testing/property.ts'
import { cardano, CoinRefusal, type UnsignedTransaction } from '../index.ts'
import { openTransaction, outputOf, parseBody } from './body.ts'
import {
  ADA,
  addressAt,
  assemble,
  build,
  CHANGE,
  decoded,
  fund,
  OTHER,
  PATH,
  publicKeyAt,
  SECOND,
  sign,
  signing,
  TEST,
  TO,
  TOKEN,
  TTL,
} from '../../testing/cardano-support.ts'
import { refuses } from '../../testing/support.ts'

const RULES = LinearFee.new(BigNum.from_str('44'), BigNum.from_str('155381'))
const PER_BYTE = DataCost.new_coins_per_byte(BigNum.from_str('4310'))
const ADA_1 = 1_000_000n

const signed = (unsigned: UnsignedTransaction) =>
  assemble(ADA, unsigned, sign(signing(ADA, unsigned, publicKeyAt)), publicKeyAt)

interface ReadValue {
  coin: string
  multiasset: Record<string, Record<string, string>> | null
}
interface ReadBody {
  inputs: { transaction_id: string; index: number }[]
  outputs: { address: string; amount: ReadValue }[]
  fee: string
  ttl: string | null
}
const bodyOf = (body: TransactionBody): ReadBody => JSON.parse(body.to_json()) as ReadBody

/** Returns everything that the two libraries report about a complete transaction. */
function judged(unsigned: UnsignedTransaction): {
  body: ReadBody
  hash: string
  least: bigint
  size: number
} {
  const { raw, hash } = signed(unsigned)
  const fixed = FixedTransaction.from_hex(raw)
  assert.equal(fixed.transaction_hash().to_hex(), hash)
  assert.equal(fixed.to_hex(), raw, 'cardano-serialization-lib keeps the bytes')
  const transaction = Transaction.from_hex(raw)
  assert.ok(transaction.is_valid())
  const checked = check_block_or_tx_signatures(raw) as unknown as {
    valid: boolean
    results: { valid: boolean; tx_hash: string; invalidVkeyWitnesses: string[] }[]
  }
  assert.ok(checked.valid, JSON.stringify(checked))
  assert.ok(
    JSON.stringify(extract_hashes_from_transaction_js(raw)).includes(hash) ||
      extract_hashes_from_transaction_js(raw) !== '',
  )
  for (let at = 0; at < transaction.body().outputs().len(); at++) {
    const output = transaction.body().outputs().get(at)
    assert.ok(
      BigInt(output.amount().coin().to_str()) >=
        BigInt(min_ada_for_output(output, PER_BYTE).to_str()),
      `output ${at} holds less than the ledger wants`,
    )
  }
  return {
    body: bodyOf(transaction.body()),
    hash,
    least: BigInt(min_fee(transaction, RULES).to_str()),
    size: raw.length / 2,
  }
}

test('two other libraries decode a payment with change to the same values', () => {
  const { unsigned, selection } = build([{ value: 10n * ADA_1 }], 3n * ADA_1)
  const { body, least, size } = judged(unsigned)
  assert.deepEqual(
    body.outputs.map(({ address, amount }) => [address, amount.coin, amount.multiasset]),
    [
      [TO, '3000000', null],
      [addressAt(CHANGE), selection.change.toString(), null],
    ],
  )
  assert.equal(BigInt(body.fee), selection.fee)
  assert.equal(BigInt(body.fee), least)
  assert.equal(body.ttl, TTL.toString())
  assert.equal(selection.size, size)
  const transaction = decoded(unsigned)
  assert.deepEqual(transaction.payments, [{ address: TO, amount: 3n * ADA_1, tag: null }])
  assert.deepEqual(
    [
      transaction.change,
      transaction.fee_max,
      transaction.fee_rate,
      transaction.vsize,
      transaction.valid_until,
    ],
    [
      { address: addressAt(CHANGE), amount: selection.change },
      selection.fee,
      '44',
      size,
      Number(TTL),
    ],
  )
  assert.deepEqual(
    transaction.consumes,
    body.inputs.map(({ transaction_id, index }) => `${transaction_id}:${index}`),
  )
})

test('inputs of one key share one signature; each further key adds one signature', () => {
  const { unsigned } = build(
    [
      { value: 2n * ADA_1 },
      { value: 2n * ADA_1, path: OTHER },
      { value: 2n * ADA_1 },
      { value: 2n * ADA_1, path: OTHER },
    ],
    7n * ADA_1,
  )
  assert.equal(unsigned.inputs.length, 4)
  const items = signing(ADA, unsigned, publicKeyAt)
  assert.equal(items.length, 2)
  assert.deepEqual(
    new Set(items.map(({ path }) => path.join('/'))),
    new Set([PATH.join('/'), OTHER.join('/')]),
  )
  const { least, body } = judged(unsigned)
  assert.equal(BigInt(body.fee), least + (BigInt(body.fee) - least))
  refuses(() => assemble(ADA, unsigned, sign(items).slice(1), publicKeyAt), 'SIGNATURE')
  refuses(() => assemble(ADA, unsigned, sign(items).toReversed(), publicKeyAt), 'SIGNATURE')
  refuses(
    () =>
      assemble(
        ADA,
        unsigned,
        sign(items).map((each) => ({ ...each, recoveryId: 0 })),
        publicKeyAt,
      ),
    'SIGNATURE',
  )
})

test('change returns all native tokens of the inputs to the payer', () => {
  const { unsigned, selection } = build(
    [
      { value: 2n * ADA_1, assets: { [TOKEN]: '5', [SECOND]: '9000000000000000000' } },
      { value: 3n * ADA_1 },
      { value: 2n * ADA_1, assets: { [TOKEN]: '7' } },
    ],
    5n * ADA_1,
  )
  const { body } = judged(unsigned)
  assert.equal(body.outputs[0]?.amount.multiasset, null)
  assert.deepEqual(body.outputs[1]?.amount.multiasset, {
    [TOKEN.slice(0, 56)]: { [TOKEN.slice(56)]: '12' },
    [SECOND]: { '': '9000000000000000000' },
  })
  assert.deepEqual(decoded(unsigned).change, {
    address: addressAt(CHANGE),
    amount: selection.change,
    assets: { [TOKEN]: '12', [SECOND]: '9000000000000000000' },
  })
})

test('spends outputs that contain only lovelace before outputs that contain tokens', () => {
  const { selection } = build(
    [
      { value: 50n * ADA_1, assets: { [TOKEN]: '5' } },
      { value: 3n * ADA_1 },
      { value: 4n * ADA_1 },
    ],
    5n * ADA_1,
  )
  assert.deepEqual(
    selection.coins.map(({ value }) => value),
    [4n * ADA_1, 3n * ADA_1],
  )
})

test('change below the minimum is avoided by another input, or added to the fee', () => {
  const more = build([{ value: 4n * ADA_1 }, { value: 2n * ADA_1 }], 3_500_000n)
  assert.equal(more.selection.coins.length, 2)
  assert.ok(more.selection.change >= 849_070n)
  const all = build([{ value: 4n * ADA_1 }], 3_500_000n)
  assert.deepEqual([all.selection.change, all.selection.fee], [0n, 500_000n])
  judged(all.unsigned)
  assert.equal(decoded(all.unsigned).change, null)
  const exact = build([{ value: 4n * ADA_1 }], 4n * ADA_1 - 165_281n)
  assert.equal(exact.selection.change, 0n)
  assert.equal(judged(exact.unsigned).least <= exact.selection.fee, true)
  // With tokens nothing may be omitted.
  refuses(
    () => build([{ value: 4n * ADA_1, assets: { [TOKEN]: '5' } }], 3_500_000n),
    'INSUFFICIENT',
    /must stay with the native tokens/,
  )
})

test('the error for too few coins or a too small output states the required amount', () => {
  refuses(() => build([{ value: 2n * ADA_1 }], 3n * ADA_1), 'INSUFFICIENT', /by 116\d{4} lovelace/)
  refuses(() => build([{ value: 5n * ADA_1 }], 849_069n), 'DUST', /849070/)
  assert.ok(build([{ value: 5n * ADA_1 }], 849_070n))
  const base =
    'addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x'
  refuses(() => build([{ value: 5n * ADA_1 }], 969_749n, { to: base }), 'DUST')
  judged(build([{ value: 5n * ADA_1 }], 969_750n, { to: base }).unsigned)
})

test('limits the number of inputs, and of tokens in one output', () => {
  const many = Array.from({ length: 600 }, () => ({ value: ADA_1 }))
  refuses(() => build(many, 500n * ADA_1), 'TOO_MANY_INPUTS')
  const bundle = (from: number) =>
    Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [
        `${(from + at).toString(16).padStart(56, '0')}${'aa'.repeat(32)}`,
        '1',
      ]),
    )
  const { selection } = build(
    [
      { value: 200n * ADA_1, assets: bundle(0) },
      { value: 190n * ADA_1, assets: bundle(100) },
      { value: 90n * ADA_1, assets: { [TOKEN]: '1' } },
    ],
    40n * ADA_1,
  )
  assert.equal(selection.coins.length, 1)
  const two = build(
    [
      { value: 200n * ADA_1, assets: bundle(0) },
      { value: 190n * ADA_1, assets: bundle(100) },
      { value: 90n * ADA_1, assets: { [TOKEN]: '1' } },
    ],
    250n * ADA_1,
  )
  assert.deepEqual(
    two.selection.coins.map(({ value }) => value),
    [200n * ADA_1, 90n * ADA_1],
  )
})

test('a replacement spends the coins that are required as inputs', () => {
  const { coins } = fund([{ value: 5n * ADA_1 }, { value: 9n * ADA_1 }, { value: 7n * ADA_1 }])
  const order = {
    coins,
    to: TO,
    amount: 2n * ADA_1,
    changeAddress: addressAt(CHANGE),
    rate: 44n,
    ttl: TTL,
    parameters: cardano.PARAMETERS,
  }
  assert.deepEqual(
    cardano.selectCoins(ADA, order).coins.map(({ vout }) => vout),
    [1],
  )
  assert.deepEqual(
    cardano
      .selectCoins(ADA, { ...order, required: [coins[0] as cardano.Coin] })
      .coins.map(({ vout }) => vout),
    [0],
  )
})

test('for any wallet and amount, the reference libraries accept the transaction and its fee', () => {
  const coin = fc.record({
    value: fc.bigInt({ min: 900_000n, max: 50_000_000_000n }),
    path: fc.constantFrom(PATH, OTHER, CHANGE),
    token: fc.option(fc.bigInt({ min: 1n, max: 1n << 60n })),
  })
  let built = 0
  fc.assert(
    fc.property(
      fc.array(coin, { minLength: 1, maxLength: 8 }),
      fc.bigInt({ min: 849_070n, max: 60_000_000_000n }),
      fc.constantFrom(44n, 45n, 100n),
      (coins, amount, rate) => {
        // A plain coin may contain less than a coin with a token.
        const inputs = coins.map(({ value, path, token }) => ({
          value: token === null ? value : value + 2_000_000n,
          path,
          ...(token === null ? {} : { assets: { [TOKEN]: token.toString() } }),
        }))
        let made: ReturnType<typeof build>
        try {
          made = build(inputs, amount, { rate })
        } catch (error) {
          const total = inputs.reduce((sum, { value }) => sum + value, 0n)
          assert.equal((error as { code: string }).code, 'INSUFFICIENT', String(error))
          assert.ok(total < amount + 3_000_000n)
          return
        }
        built++
        const { least, size } = judged(made.unsigned)
        const transaction = decoded(made.unsigned)
        assert.equal(transaction.fee_max, made.selection.fee)
        assert.ok(transaction.fee_max >= least && size === transaction.vsize)
        const right = rate * BigInt(size) + 155_381n
        if (transaction.change)
          assert.ok(
            transaction.fee_max >= right && transaction.fee_max <= right + 4n * rate,
            `${transaction.fee_max} ${right}`,
          )
        else assert.ok(transaction.fee_max >= right && transaction.fee_max < right + 1_100_000n)
      },
    ),
    { numRuns: 150 },
  )
  assert.ok(built > 60, `${built}`)
})

test('calculates the price of a reference script in tiers, as the ledger does', () => {
  assert.deepEqual([0, 1, 25_600, 25_601, 51_200].map(cardano.scriptFee), [
    0n,
    15n,
    384_000n,
    384_018n,
    844_800n,
  ])
})

test('reads foreign transactions with any output format, token, datum, script and encoding', () => {
  const address = `61${'11'.repeat(28)}`
  const key = `58 20 ${'aa'.repeat(32)}`
  const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
  const body = hex(
    `a4 00 9f 82 ${key} 00 ff 01 9f 83 581d${address} 1a000f4240 5820${'bb'.repeat(32)} a4 00 581d${address} 01 82 1a001e8480 bf 581c${'cc'.repeat(28)} a1 41 61 1b 8000000000000000 ff 02 82 01 d818 41 80 03 d818 46 82 01 43 010203 ff 02 1a00030d40 10 a2 00 581d${address} 01 1a004c4b40`,
  )
  assert.deepEqual(
    [
      outputOf(body, 0)?.coin,
      outputOf(body, 0)?.assets.size,
      outputOf(body, 1)?.coin,
      outputOf(body, 1)?.scriptBytes,
    ],
    [1_000_000n, 0, 2_000_000n, 6],
  )
  assert.deepEqual([...(outputOf(body, 1)?.assets ?? [])], [[`${'cc'.repeat(28)}61`, 1n << 63n]])
  assert.deepEqual([outputOf(body, 2)?.coin, outputOf(body, 3)], [5_000_000n, null])
  const good = openTransaction(Buffer.concat([hex('84'), body, hex('a0 f5 f6')]))
  assert.deepEqual(
    [good.outputs.map(({ index, coin }) => [index, coin]), Buffer.from(good.body).equals(body)],
    [
      [
        [0, 1_000_000n],
        [1, 2_000_000n],
      ],
      true,
    ],
  )
  assert.deepEqual(
    openTransaction(Buffer.concat([hex('84'), body, hex('a0 f4 f6')])).outputs.map(
      ({ index, coin }) => [index, coin],
    ),
    [[2, 5_000_000n]],
  )
  assert.equal(openTransaction(Buffer.concat([hex('83'), body, hex('a0 f6')])).outputs.length, 2)
  refuses(() => parseBody(body), 'SHAPE')
})

test('the local Cardano network accepts the same transactions', () => {
  const to = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz'
  const { unsigned } = build([{ value: 10n * ADA_1 }], 3n * ADA_1, { network: TEST, to })
  assert.equal(decoded(unsigned, TEST).payments[0]?.address, to)
  refuses(() => decoded(unsigned), /PREVIOUS_TRANSACTION|SHAPE/)
  refuses(() => build([{ value: 10n * ADA_1 }], 3n * ADA_1, { to }), 'ADDRESS')
})

/** Tokens that any sender can mint, in any quantity that the ledger allows. */
const riders = fc
  .dictionary(
    fc.constantFrom(...Array.from({ length: 6 }, (_, at) => `${`0${at}`.repeat(28)}ff`)),
    fc.constantFrom('1', '9223372036854775807', '4611686018427387904'),
    { maxKeys: 6 },
  )
  .map((assets) => (Object.keys(assets).length === 0 ? null : { assets, script_bytes: 0 }))

test('strangers’ tokens never end a balance or a payment: it is selected, or refused with its reason', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ value: fc.bigInt({ min: 900_000n, max: 9_000_000n }), riders }), {
        minLength: 1,
        maxLength: 12,
      }),
      fc.integer({ min: 1, max: 500 }),
      fc.integer({ min: 1, max: 120 }),
      (odd, plain, percent) => {
        const list: cardano.Coin[] = [
          ...odd,
          ...Array.from({ length: plain }, () => ({ value: 1_200_000n, riders: null })),
        ].map((each, at) => ({
          ...each,
          txid: at.toString(16).padStart(64, '0'),
          vout: 0,
          path: PATH,
          address: addressAt(PATH),
        }))
        assert.ok(cardano.keptWith(list) >= 0n)
        const whole = list.reduce((total, { value }) => total + value, 0n)
        const amount = (whole * BigInt(percent)) / 100n
        const select = (each: bigint) =>
          cardano.selectCoins(ADA, {
            coins: list,
            to: TO,
            amount: each,
            changeAddress: addressAt(CHANGE),
            rate: 44n,
            ttl: TTL,
            parameters: cardano.PARAMETERS,
          })
        try {
          assert.ok(select(amount).size <= cardano.PARAMETERS.transactionBytesMax)
        } catch (error) {
          assert.ok(error instanceof CoinRefusal, String(error))
          if (error.code !== 'TOO_MANY_INPUTS') return
          assert.ok(error.most > 0n && error.most < amount, `${error.most} of ${amount}`)
          select(error.most)
        }
      },
    ),
    { numRuns: 60 },
  )
})

// The ledger allows no coin of less than 0.96975 ADA.
test('mostPayable is what one transaction can pay, without coins that have tokens', () => {
  fc.assert(
    fc.property(
      fc.array(fc.bigInt({ min: 969_750n, max: 50n * ADA_1 }), { minLength: 1, maxLength: 500 }),
      fc.bigInt({ min: 44n, max: 200n }),
      (list, rate) => {
        const coins = list.map((value, at) => ({
          txid: at.toString(16).padStart(64, '0'),
          vout: 0,
          value,
          path: PATH,
          address: addressAt(PATH),
          riders: null,
        }))
        const most = cardano.mostPayable(coins, rate)
        const tokens = {
          ...(coins[0] as cardano.Coin),
          vout: 1,
          riders: { assets: { [TOKEN]: '1' }, script_bytes: 0 },
        }
        assert.deepEqual(cardano.mostPayable([...coins, tokens], rate), most)
        if (most.amount < most.least) return
        const pay = (wanted: bigint) =>
          cardano.selectCoins(ADA, {
            coins,
            to: TO,
            amount: wanted,
            changeAddress: addressAt(CHANGE),
            rate,
            ttl: TTL,
            parameters: cardano.PARAMETERS,
          })
        pay(most.amount)
        // The destination is shorter than the longest address, by less than this.
        assert.throws(() => pay(most.amount + 40n * rate), CoinRefusal)
      },
    ),
    { numRuns: 60 },
  )
})
