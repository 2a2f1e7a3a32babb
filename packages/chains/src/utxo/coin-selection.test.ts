// Coin selection loses and wastes nothing, and finds a selection whenever one is possible.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { ChainError, CoinRefusal, utxo, type UtxoParams } from '../index.ts'
import { selectUTXO } from '@scure/btc-signer'
import { addressOf, BTC, refuses } from '../../testing/support.ts'

const params = BTC.utxo as UtxoParams
const TO = addressOf(BTC, [9, 0, 9])
const CHANGE = addressOf(BTC, [1, 0, 0x7fffffff])
const DUST = 294n
const coin = (value: bigint, at: number): utxo.Utxo => ({
  txid: createHash('sha256').update(`coin ${at}`).digest('hex'),
  vout: at % 3,
  value,
  path: [1, 0, at],
  address: addressOf(BTC, [1, 0, 0]),
})
const coins = (values: readonly bigint[]) => values.map(coin)
const select = (
  values: readonly bigint[] | utxo.Utxo[],
  amount: bigint,
  feeRate: bigint,
  required?: utxo.Utxo[],
) =>
  utxo.selectCoins(BTC, {
    utxos: typeof values[0] === 'bigint' ? coins(values as bigint[]) : (values as utxo.Utxo[]),
    to: TO,
    amount,
    changeAddress: CHANGE,
    feeRate,
    required,
  })
const sum = (list: readonly { value: bigint }[]) =>
  list.reduce((total, each) => total + each.value, 0n)
const feeAt = (inputs: number, outputs: number, feeRate: bigint) =>
  (BigInt(
    utxo.virtualSize(
      params,
      inputs,
      Array.from({ length: outputs }, () => 22),
    ),
  ) *
    feeRate) /
  1000n

const values = fc.array(
  fc.oneof(fc.bigInt({ min: 1n, max: 5000n }), fc.bigInt({ min: 294n, max: 10n ** 9n })),
  { maxLength: 25 },
)
const amounts = fc.oneof(
  fc.bigInt({ min: DUST, max: 5000n }),
  fc.bigInt({ min: DUST, max: 10n ** 9n }),
)
const rates = fc.oneof(
  fc.constantFrom(1000n, 1500n, 1001n, 20_000n),
  fc.bigInt({ min: 1000n, max: 1_000_000n }),
)

test('conserves value, creates no dust change, and pays at least the required fee', () => {
  fc.assert(
    fc.property(values, amounts, rates, (list, amount, rate) => {
      let selection: utxo.Selection
      try {
        selection = select(list, amount, rate)
      } catch (error) {
        assert.ok(error instanceof ChainError && error.code === 'INSUFFICIENT', String(error))
        return
      }
      const { utxos, fee, change, vsize } = selection
      assert.equal(sum(utxos), amount + change + fee)
      assert.equal(new Set(utxos.map(utxo.outpointOf)).size, utxos.length)
      assert.ok(change === 0n || change >= DUST)
      assert.equal(vsize, utxo.virtualSize(params, utxos.length, change > 0n ? [22, 22] : [22]))
      const due = (BigInt(vsize) * rate) / 1000n
      assert.ok(fee >= due)
      assert.ok(fee >= BigInt(vsize), 'below what nodes relay')
      // Without a change output, the surplus is less than the cost plus the value of change.
      assert.ok(
        change > 0n ? fee === due : fee - due < DUST + feeAt(1, 2, rate) - feeAt(1, 1, rate) + 1n,
      )
    }),
    { numRuns: 500 },
  )
})

test('returns INSUFFICIENT only if no number of the largest coins suffices', () => {
  fc.assert(
    fc.property(values, amounts, rates, (list, amount, rate) => {
      const sorted = [...list].sort((a, b) => (a > b ? -1 : 1))
      let total = 0n
      const possible = sorted.some((value, at) => {
        total += value
        return total >= amount + feeAt(at + 1, 1, rate)
      })
      let selected = true
      try {
        select(list, amount, rate)
      } catch (error) {
        assert.equal((error as ChainError).code, 'INSUFFICIENT')
        selected = false
      }
      assert.equal(selected, possible)
    }),
    { numRuns: 500 },
  )
})

test('selects the same coins whatever the order of the list', () => {
  fc.assert(
    fc.property(
      values.chain((list) =>
        fc.tuple(
          fc.constant(coins(list)),
          fc.shuffledSubarray(coins(list), { minLength: list.length }),
        ),
      ),
      amounts,
      rates,
      ([one, other], amount, rate) => {
        const attempt = (list: utxo.Utxo[]) => {
          try {
            return select(list, amount, rate)
          } catch (error) {
            return (error as ChainError).message
          }
        }
        assert.deepEqual(attempt(other), attempt(one))
      },
    ),
    { numRuns: 200 },
  )
})

test('includes each required coin as an input exactly once', () => {
  fc.assert(
    fc.property(
      values,
      fc.bigInt({ min: 1n, max: 10n ** 6n }),
      amounts,
      rates,
      (list, value, amount, rate) => {
        const must = coin(value, 1000)
        const all = [...coins(list), must]
        try {
          const { utxos, fee, change } = select(all, amount, rate, [must])
          assert.equal(
            utxos.filter((each) => utxo.outpointOf(each) === utxo.outpointOf(must)).length,
            1,
          )
          assert.equal(sum(utxos), amount + fee + change)
        } catch (error) {
          assert.equal((error as ChainError).code, 'INSUFFICIENT')
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('adds a remainder below the dust limit to the fee', () => {
  const due = feeAt(1, 2, 1000n)
  const [must] = coins([50_000n + due + DUST - 1n]) as [utxo.Utxo]
  // With required coins, the search for an exact match is skipped.
  assert.deepEqual(select([must], 50_000n, 1000n, [must]), {
    utxos: [must],
    fee: due + DUST - 1n,
    change: 0n,
    vsize: utxo.virtualSize(params, 1, [22]),
  })
  const [richer] = coins([50_000n + due + DUST]) as [utxo.Utxo]
  assert.deepEqual(select([richer], 50_000n, 1000n, [richer]), {
    utxos: [richer],
    fee: due,
    change: DUST,
    vsize: utxo.virtualSize(params, 1, [22, 22]),
  })
})

test('does not count a required coin twice', () => {
  const [must, other] = coins([10_000n, 5000n]) as [utxo.Utxo, utxo.Utxo]
  assert.deepEqual(select([must, other], 12_000n, 1000n, [must]).utxos, [must, other])
  refuses(() => select([must, other], 16_000n, 1000n, [must]), 'INSUFFICIENT')
})

test('selects the same coins of equal value whatever their order', () => {
  const list = coins([7000n, 7000n, 7000n, 7000n])
  assert.deepEqual(select(list.toReversed(), 3000n, 1000n), select(list, 3000n, 1000n))
})

test('creates no change if the coins match amount and fee exactly', () => {
  const fee = feeAt(2, 1, 1000n)
  const { utxos, change } = select([900_000n, 40_000n, 60_000n + fee, 77_777n], 100_000n, 1000n)
  assert.equal(change, 0n)
  assert.deepEqual(utxos.map((each) => each.value).sort(), [40_000n, 60_000n + fee].sort())
})

test('the limit of sufficient funds is exact to one satoshi', () => {
  const fee = feeAt(1, 1, 5000n)
  assert.equal(select([50_000n + fee], 50_000n, 5000n).fee, fee)
  refuses(() => select([50_000n + fee - 1n], 50_000n, 5000n), 'INSUFFICIENT', /by 1 satoshi/)
})

test('refuses an amount below dust, an empty wallet, and a foreign address', () => {
  refuses(() => select([10_000n], DUST - 1n, 1000n), 'DUST')
  assert.ok(select([10_000n], DUST, 1000n))
  refuses(() => select([], 1000n, 1000n), 'INSUFFICIENT')
  refuses(
    () =>
      utxo.selectCoins(BTC, {
        utxos: [],
        to: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
        amount: 1000n,
        changeAddress: CHANGE,
        feeRate: 1000n,
      }),
    'ADDRESS',
  )
})

test('reads each of very many coins a few times only', () => {
  const many = Array.from({ length: 20_000 }, (_, at) => ({
    ...coin(0n, 0),
    txid: at.toString(16).padStart(64, '0'),
    value: 100_000n + BigInt(at),
  }))
  // Counted rather than timed: a selection that compares all coins with each other would read their
  // values 400 million times.
  let reads = 0
  const counted = (value: (each: utxo.Utxo) => bigint) =>
    many.map((each) => ({
      ...each,
      get value() {
        reads++
        return value(each)
      },
    }))
  assert.equal(
    select(
      counted(({ value }) => value),
      50_000n,
      1000n,
    ).utxos.length,
    1,
  )
  refuses(
    () =>
      select(
        counted(() => 400n),
        1_000_000n,
        1000n,
      ),
    /TOO_MANY_INPUTS|INSUFFICIENT/,
  )
  assert.ok(reads < 100 * many.length, `${reads} reads`)
})

/** Returns the choice of an independent library as a selection of ours. */
function foreign(list: readonly bigint[], amount: bigint, feeRate: bigint): utxo.Selection | null {
  const script = utxo.scriptOf(BTC, CHANGE)
  const network = { bech32: 'bcrt', pubKeyHash: 0x6f, scriptHash: 0xc4, wif: 0xef }
  const inputs = coins(list).map((each) => ({
    txid: Buffer.from(each.txid, 'hex'),
    index: each.vout,
    witnessUtxo: { amount: each.value, script },
  }))
  const selected = selectUTXO(inputs, [{ address: TO, amount }], 'default', {
    changeAddress: CHANGE,
    feePerByte: feeRate / 1000n,
    network,
    createTx: false,
    bip69: false,
  })
  if (!selected) return null
  const all = coins(list)
  const utxos = selected.inputs.map(
    (input) =>
      all.find(
        ({ txid, vout }) =>
          txid === Buffer.from(input.txid as Uint8Array).toString('hex') && vout === input.index,
      ) as utxo.Utxo,
  )
  const change =
    selected.outputs.reduce((rest, output) => rest + (output.amount as bigint), 0n) - amount
  return {
    utxos,
    change,
    fee: sum(utxos) - amount - change,
    vsize: utxo.virtualSize(params, utxos.length, change > 0n ? [22, 22] : [22]),
  }
}

test("selections waste no more in total than another library's, and rarely more each", () => {
  const wallets = fc.array(fc.bigInt({ min: 1000n, max: 10n ** 7n }), {
    minLength: 2,
    maxLength: 25,
  })
  const wholeRates = fc.constantFrom(2000n, 5000n, 20_000n, 60_000n, 200_000n)
  let [ours, theirs, better, worse, count] = [0n, 0n, 0, 0, 0]
  fc.assert(
    fc.property(
      wallets,
      fc.bigInt({ min: 1000n, max: 10n ** 7n }),
      wholeRates,
      (list, amount, rate) => {
        let selection: utxo.Selection
        try {
          selection = select(list, amount, rate)
        } catch {
          return
        }
        const other = foreign(list, amount, rate)
        if (!other) return
        const [own, foreignWaste] = [
          utxo.wasteOf(BTC, selection, rate),
          utxo.wasteOf(BTC, other, rate),
        ]
        ours += own
        theirs += foreignWaste
        count++
        if (own < foreignWaste) better++
        if (own > foreignWaste) worse++
      },
    ),
    { numRuns: 400, seed: 7 },
  )
  assert.ok(count > 200)
  assert.ok(ours <= theirs, `${ours} against ${theirs}`)
  assert.ok(
    worse * 4 < better + worse + 1 || worse === 0,
    `worse ${worse}, better ${better} of ${count}`,
  )
})

test('names why coins cannot be selected, and the largest amount that is possible instead', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 520 }),
      fc.bigInt({ min: 1n, max: 100_000n }),
      fc.integer({ min: 0, max: 120 }),
      rates,
      (count, value, percent, feeRate) => {
        const list = coins(Array.from({ length: count }, (_, at) => value + BigInt(at % 7)))
        const amount = (sum(list) * BigInt(percent)) / 100n
        try {
          const { utxos } = select(list, amount, feeRate)
          assert.ok(utxos.length <= 400)
        } catch (error) {
          assert.ok(error instanceof CoinRefusal, String(error))
          if (error.code === 'DUST') assert.ok(amount < DUST)
          if (error.code !== 'TOO_MANY_INPUTS') return
          assert.ok(sum(list) > amount && error.most < amount)
          if (error.most >= DUST) assert.ok(select(list, error.most, feeRate).utxos.length <= 400)
        }
      },
    ),
    { numRuns: 150 },
  )
})

test('mostPayable is what one transaction can pay, and a satoshi more is refused', () => {
  // The longest script that can be paid: a taproot address (BIP350's test vector).
  const longest = utxo.addressOf(BTC, Uint8Array.from([0x51, 0x20, ...Buffer.alloc(32, 7)]))
  assert.ok(longest !== null)
  fc.assert(
    fc.property(values, rates, (list, feeRate) => {
      const { amount, fee, least } = utxo.mostPayable(BTC, coins(list), feeRate)
      assert.ok(amount >= 0n && amount + fee <= sum(coins(list)))
      const pay = (wanted: bigint) =>
        utxo.selectCoins(BTC, {
          utxos: coins(list),
          to: longest,
          amount: wanted,
          changeAddress: CHANGE,
          feeRate,
        })
      if (amount < least) return
      const selection = pay(amount)
      assert.equal(sum(selection.utxos), amount + selection.fee + selection.change)
      refuses(() => pay(amount + 1n), 'INSUFFICIENT')
    }),
    { numRuns: 300 },
  )
})

test('mostPayable counts the largest coins that fit into one transaction', () => {
  const list = coins(Array.from({ length: 900 }, (_, at) => 10_000n + BigInt(at)))
  const { amount, fee } = utxo.mostPayable(BTC, list, 1000n)
  const largest = list.map(({ value }) => value).slice(-utxo.INPUTS_MAX)
  assert.equal(
    amount + fee,
    largest.reduce((total, value) => total + value, 0n),
  )
  assert.deepEqual(utxo.mostPayable(BTC, [], 1000n), { amount: 0n, fee: 0n, least: 546n })
  assert.deepEqual(utxo.mostPayable(BTC, coins([50n]), 1000n), { amount: 0n, fee: 0n, least: 546n })
})
