// Tests of ADA, SOL and tokens of Solana end to end, on local chains that apply Cardano's ledger
// rules and run the Solana runtime. Two other libraries verify the Cardano transactions that the
// platform broadcasts.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CustodyClient, CustodyError } from '@custody/client'
import { check_block_or_tx_signatures } from '@cardananium/cquisitor-lib'
import {
  BigNum,
  DataCost,
  LinearFee,
  min_ada_for_output,
  min_fee,
  Transaction,
} from '@emurgo/cardano-serialization-lib-nodejs'
import { assertExportIsTied } from '../testing/exported-balances.ts'
import {
  balance,
  call,
  fundedWallet,
  PRIVATE_KEY,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
before(() => platform.start())
after(() => platform.remove())

const audited = async () => {
  const { ok, differences, dust } = await platform.operator('audit')
  assert.deepEqual([ok, dust], [true, []], JSON.stringify(differences))
}

describe('Cardano', () => {
  let user: User
  let customer: User
  let source = ''
  let devnetUrl = ''
  /** Addresses of CIP-19's test vectors: an enterprise address and a base address. */
  const STRANGER = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz'
  const BASE =
    'addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae'

  interface Utxo {
    tx_hash: string
    output_index: number
    amount: { unit: string; quantity: string }[]
  }
  interface Utxos {
    inputs: { address: string; tx_hash: string; output_index: number }[]
    outputs: { address: string; amount: Utxo['amount']; consumed_by_tx: string | null }[]
  }
  const ask = (path: string) => fetch(`${devnetUrl}/ada/${path}`)
  const get = async <T>(path: string): Promise<T> => {
    const answer = await ask(path)
    assert.equal(answer.status, 200, `${path}: ${await answer.clone().text()}`)
    return (await answer.json()) as T
  }
  const lovelaceAt = async (address: string): Promise<bigint> =>
    (await get<Utxo[]>(`addresses/${address}/utxos`)).reduce(
      (sum, { amount }) =>
        sum + BigInt(amount.find(({ unit }) => unit === 'lovelace')?.quantity ?? 0),
      0n,
    )
  const send = (amount: string, to: string, more: Record<string, unknown> = {}, from = user) =>
    call<Transfer & { code: string; message: string }>(
      from,
      'POST',
      '/dac/v1/transaction',
      transferBody('ADA', amount, to, more),
    )
  async function sent(
    amount: string,
    to: string,
    more: Record<string, unknown> = {},
    from = user,
  ): Promise<Transfer> {
    const answer = await send(amount, to, more, from)
    assert.equal(answer.status, 200, answer.text)
    return answer.body
  }
  async function done(id: string, from = user): Promise<Transfer> {
    const transfer = await terminal(from, id)
    assert.equal(
      transfer.status,
      'confirmed',
      `${transfer.failure_reason ?? ''}\n${platform.output}`,
    )
    return transfer
  }
  const confirmed = async (...o: Parameters<typeof sent>): Promise<Transfer> =>
    done((await sent(...o)).id, o[3])
  const fund = async (address: string, amount: string, more: Record<string, unknown> = {}) =>
    (
      await platform.operator('devnet', { command: 'fund', asset: 'ADA', address, amount, ...more })
    )['hash'] as string
  const holds = (amount: string, who = user) =>
    waitFor(
      `a balance of ${amount}`,
      async () => (await balance(who, 'ADA')).omnibus_balance === amount,
    )
  /**
   * Verifies a broadcast transaction with two libraries that the builder does not use: signatures,
   * minimum fee and minimum outputs.
   */
  async function judged(hash: string): Promise<Utxos> {
    const { cbor } = await get<{ cbor: string }>(`txs/${hash}/cbor`)
    const checked = check_block_or_tx_signatures(cbor) as unknown as { valid: boolean }
    assert.ok(checked.valid, JSON.stringify(checked))
    const transaction = Transaction.from_hex(cbor)
    const body = transaction.body()
    assert.ok(
      BigInt(body.fee().to_str()) >=
        BigInt(
          min_fee(
            transaction,
            LinearFee.new(BigNum.from_str('44'), BigNum.from_str('155381')),
          ).to_str(),
        ),
    )
    for (let at = 0; at < body.outputs().len(); at++) {
      const output = body.outputs().get(at)
      assert.ok(
        BigInt(output.amount().coin().to_str()) >=
          BigInt(
            min_ada_for_output(
              output,
              DataCost.new_coins_per_byte(BigNum.from_str('4310')),
            ).to_str(),
          ),
      )
    }
    return get<Utxos>(`txs/${hash}/utxos`)
  }

  before(async () => {
    devnetUrl = `http://127.0.0.1:${(JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { devnet: number }).devnet}`
    user = await platform.user('cardano')
    customer = await platform.user('cardano-customer')
    source = await fundedWallet(platform, user, 'ADA', '100')
  })

  test('credits a deposit after enough confirmations, at an enterprise address with a payment URI', async () => {
    assert.match(source, /^addr_test1v/)
    assert.deepEqual(
      await balance(user, 'ADA').then(({ balance: free, omnibus_balance: held }) => [free, held]),
      ['100', '100'],
    )
    assert.equal(await lovelaceAt(source), 100_000_000n)
    const {
      body: {
        data: [deposit],
      },
    } = await call<{ data: { source_id: string | null }[] }>(
      user,
      'GET',
      '/dac/v1/transactions?asset=ADA&type=Deposit',
    )
    assert.match(
      deposit?.source_id ?? '',
      /^addr_test1v/,
      'who paid is named, of the very first deposit too',
    )
    const { body } = await call<{ valid: boolean; reason?: string }>(
      user,
      'POST',
      '/dac/v1/validate-address',
      { asset: 'ADA', address: 'stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn' },
    )
    assert.match(JSON.stringify(body), /stake address/)
  })

  test('ADA is sent with the exact estimated fee, and the customer receives the whole amount', async () => {
    await call(customer, 'POST', '/dac/v1/create-wallet', { asset: 'ADA' })
    const { address } = (
      await call<{ address: string }>(customer, 'POST', '/dac/v1/address', { asset: 'ADA' })
    ).body
    const rates = (
      await call<Record<string, unknown>>(user, 'GET', '/dac/v1/network-fee-rates/ADA')
    ).body
    assert.match(JSON.stringify(rates), /"?44"?/)
    const estimate = (
      await call<{ fee: unknown; basis: string }>(user, 'POST', '/dac/v1/estimate-fee', {
        asset: 'ADA',
        fee_rate: 44,
        amount: 30,
      })
    ).body
    const transfer = await confirmed('30', address)
    assert.equal(String(estimate.fee), transfer.fee)
    await holds('30', customer)
    const { outputs } = await judged(transfer.hash as string)
    assert.deepEqual(
      [outputs[0]?.address, outputs[0]?.amount],
      [address, [{ unit: 'lovelace', quantity: '30000000' }]],
    )
    const left = 70_000_000n - BigInt(Math.round(Number(transfer.fee) * 1e6))
    assert.equal(outputs[1]?.amount[0]?.quantity, left.toString())
    assert.equal(
      (await balance(user, 'ADA')).omnibus_balance,
      `${left / 1_000_000n}.${(left % 1_000_000n).toString().padStart(6, '0')}`.replace(/0+$/, ''),
    )
    await audited()
  })

  test('spends from every address of the wallet with one signature per key, at the given fee rate', async () => {
    const further = (
      await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'ADA' })
    ).body.address
    assert.notEqual(further, source)
    const before = Number((await balance(user, 'ADA')).omnibus_balance)
    await Promise.all([fund(further, '40'), fund(further, '41'), fund(source, '42')])
    await waitFor(
      'three deposits',
      async () => Number((await balance(user, 'ADA')).omnibus_balance) > before + 122,
    )
    const transfer = await confirmed('190', BASE, { fee_rate: 50 })
    const { inputs } = await judged(transfer.hash as string)
    assert.equal(inputs.length, 4)
    const witnesses = Transaction.from_hex(
      (await get<{ cbor: string }>(`txs/${transfer.hash}/cbor`)).cbor,
    )
      .witness_set()
      .vkeys()
    assert.equal(witnesses?.len(), 3)
    assert.equal(await lovelaceAt(BASE), 190_000_000n)
    await audited()
  })

  test('credits the ADA of an output with native tokens, and keeps the tokens in the wallet', async () => {
    const other = await platform.user('cardano-tokens')
    const address = await fundedWallet(platform, other, 'ADA', '4')
    const hash = await fund(address, '3', { tokens: { GOLD: '1000', silver: '7' } })
    await holds('7', other)
    const unit = async (txid: string) =>
      (await get<Utxos>(`txs/${txid}/utxos`)).outputs.flatMap(({ amount }, index) =>
        amount.filter((each) => each.unit !== 'lovelace').map((each) => ({ ...each, index })),
      )
    const tokens = await unit(hash)
    assert.equal(tokens.length, 2)
    // The ADA that must stay with the tokens is not spendable.
    const free = (await balance(other, 'ADA')).balance
    assert.ok(Number(free) > 5 && Number(free) < 6, free)
    const refused = await send('5.9', STRANGER, {}, other)
    assert.match(refused.text, /must stay on the account/)
    // The output without tokens is enough for the first transfer. The second one must also spend the
    // output with tokens.
    const first = await confirmed('1', STRANGER, {}, other)
    assert.deepEqual(await unit(first.hash as string), [])
    const second = await confirmed('4', STRANGER, {}, other)
    await judged(second.hash as string)
    const change = await unit(second.hash as string)
    assert.deepEqual(
      change.map((each) => [each.unit, each.quantity]).toSorted(),
      tokens.map((each) => [each.unit, each.quantity]).toSorted(),
    )
    assert.deepEqual(
      change.map(({ index }) => index),
      [1, 1],
    )
    await audited()
    assert.ok(((await assertExportIsTied(user)).get('ADA') ?? 0) > 3)
  })
})

describe('Solana', () => {
  let user: User
  let customer: User
  let source = ''
  const STRANGER = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
  const NEW = 'vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg'

  const send = (
    asset: string,
    amount: string,
    to: string,
    more: Record<string, unknown> = {},
    from = user,
  ) =>
    call<Transfer & { code: string; message: string }>(
      from,
      'POST',
      '/dac/v1/transaction',
      transferBody(asset, amount, to, more),
    )
  async function sent(
    asset: string,
    amount: string,
    to: string,
    more: Record<string, unknown> = {},
  ): Promise<Transfer> {
    const answer = await send(asset, amount, to, more)
    assert.equal(answer.status, 200, answer.text)
    return answer.body
  }
  const confirmed = async (
    asset: string,
    amount: string,
    to: string,
    more: Record<string, unknown> = {},
  ) => {
    const { id } = await sent(asset, amount, to, more)
    const done = await terminal(user, id)
    assert.equal(done.status, 'confirmed', `${done.failure_reason ?? ''}\n${platform.output}`)
    return done
  }
  const devnet = (command: Record<string, unknown>) => platform.operator('devnet', command)
  const lamports = async (address: string) =>
    (await rpc<{ value: number }>(platform, 'SOL', 'getBalance', [address])).value
  before(async () => {
    user = await platform.user('solana')
    customer = await platform.user('solana-customer')
    source = await fundedWallet(platform, user, 'SOL', '3')
  })

  test("credits a deposit, and keeps the chain's minimum reserve unspendable", async () => {
    assert.deepEqual(
      [(await balance(user, 'SOL')).balance, (await balance(user, 'SOL')).omnibus_balance],
      ['2.99910912', '3'],
    )
  })

  test('sends SOL with the exact fee of the chain, and the customer receives the whole amount', async () => {
    await call(customer, 'POST', '/dac/v1/create-wallet', { asset: 'SOL' })
    const { address } = (
      await call<{ address: string }>(customer, 'POST', '/dac/v1/address', { asset: 'SOL' })
    ).body
    const done = await confirmed('SOL', '0.5', address)
    assert.equal(done.fee, '0.000006')
    await waitFor(
      'the customer’s deposit',
      async () => (await balance(customer, 'SOL')).omnibus_balance === '0.5',
    )
    assert.equal(await lamports(source), 3_000_000_000 - 500_000_000 - 6000)
  })

  test('sweeps a further address: SOL pays its own fee, and the SOL wallet pays for tokens', async () => {
    const total = async (asset: string) => Number((await balance(user, asset)).omnibus_balance)
    const further = (
      await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'SOL' })
    ).body.address
    assert.notEqual(further, source)
    const sol = await total('SOL')
    await platform.fund('SOL', further, '0.25')
    await waitFor(
      'the sweep of SOL',
      async () => (await lamports(further)) === 0 && (await total('SOL')) > sol,
    )
    await waitFor(
      'its books',
      async () => Math.abs((await total('SOL')) - sol - 0.25 + 0.000006) < 1e-9,
    )
    await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'USDT_SOL' })
    await platform.fund('USDT_SOL', further, '7')
    await waitFor(
      'the sweep of USDT',
      async () => (await balance(user, 'USDT_SOL')).balance === '7',
    )
    // The fee consists of two signatures and the compute units; the sweep also pays the rent of the
    // omnibus address's own token account.
    await waitFor(
      'the fee of the sweep',
      async () => Math.abs((await total('SOL')) - sol - 0.25 + 0.000006 + 0.00205028) < 1e-9,
    )
    await audited()
  })

  test('receives tokens and sends them to an existing account or a new one, paying its rent', async () => {
    assert.equal(await fundedWallet(platform, user, 'USDC_SOL', '20'), source)
    const before = await lamports(source)
    const first = await confirmed('USDC_SOL', '1.25', STRANGER)
    assert.equal(first.fee, '0.00204528')
    assert.equal(await lamports(source), before - 2_045_280)
    const second = await confirmed('USDC_SOL', '1.25', STRANGER, { fee_rate: 6000 })
    assert.equal(second.fee, '0.000006')
    assert.equal((await balance(user, 'USDC_SOL')).balance, '17.5')
    await audited()
  })

  test('a transfer that the chain never accepted fails at its expiry, and its money is released', async () => {
    const held = (await balance(user, 'SOL')).balance
    const tokens = (await balance(user, 'USDC_SOL')).balance
    const prepaid = async () =>
      (await call<{ balance: string; reserved: string }>(user, 'POST', '/dac/v1/prepaid-fee', {}))
        .body
    const before = await prepaid()
    await devnet({ command: 'fault', network: 'SOL', mode: 'reject' })
    // The chain produces no blocks automatically, so no transaction expires before it was seen.
    const ids = await platform.halted('SOL', async () => {
      const made = [(await sent('SOL', '0.3', NEW)).id, (await sent('USDC_SOL', '3', NEW)).id]
      for (const id of made)
        await waitFor('it is signed', async () =>
          ['BROADCASTING', 'CONFIRMING'].includes(
            (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body.sub_status,
          ),
        )
      await devnet({ command: 'mine', network: 'SOL', blocks: 152 })
      return made
    })
    for (const id of ids) {
      const done = await terminal(user, id)
      assert.equal(done.status, 'failed')
      assert.match(done.failure_reason ?? '', /expired/)
    }
    await devnet({ command: 'fault', network: 'SOL', mode: 'heal' })
    assert.equal((await balance(user, 'SOL')).balance, held)
    assert.equal((await balance(user, 'USDC_SOL')).balance, tokens)
    assert.deepEqual(await prepaid(), before, 'the platform fee that was charged is back too')
    await audited()
    assert.ok(((await assertExportIsTied(user)).get('USDC_SOL') ?? 0) > 3)
  })
})

describe('new workspaces', () => {
  /** More workspaces than the nodes have prepared keys for. */
  const COUNT = 6
  const clientOf = (user: User) =>
    new CustodyClient({ baseUrl: platform.base, apiKey: user.apiKey, privateKey: PRIVATE_KEY })

  /** Returns the id of the wallet that a call creates, or that another call has created. */
  const walletOf = (user: User): Promise<string> =>
    clientOf(user)
      .createWallet('SOL')
      .then(
        ({ id }) => id,
        (error: unknown) => {
          assert.ok(error instanceof CustodyError && error.code === 'WALLET_EXISTS', String(error))
          return error.problem['wallet_id'] as string
        },
      )

  test('new workspaces that create wallets at the same time each get one wallet and one key', async () => {
    const users: User[] = []
    for (let at = 0; at < COUNT; at++) users.push(await platform.user(`new-${at}`))
    // Two callers of each workspace.
    const ids = await Promise.all(users.flatMap((user) => [walletOf(user), walletOf(user)]))
    assert.equal(new Set(ids).size, COUNT)
    users.forEach((_, at) => assert.equal(ids[2 * at], ids[2 * at + 1]))
    const keys = await Promise.all(
      users.map(async (user) => {
        const { status, body, text } = await call<{ keys: { curve: string; key_id: string }[] }>(
          user,
          'GET',
          '/dac/v1/keys',
        )
        assert.equal(status, 200, text)
        return body.keys.filter(({ curve }) => curve === 'ed25519').map(({ key_id }) => key_id)
      }),
    )
    assert.ok(keys.every((each) => each.length === 1))
    assert.equal(new Set(keys.flat()).size, COUNT)
  })
})
