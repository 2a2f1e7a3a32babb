import { signRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { createHash, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  BTC,
  btc,
  ETH,
  eth,
  funding,
  SignerCluster,
  now,
  pay,
  registry,
  SINK_BTC,
  SINK_ETH,
  transfer,
  usdt,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * A hostile platform sends orders. The nodes of the pair, in both roles, refuse them with a reason.
 */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const ONE = 10n ** 18n
const from = [1, ETH.chain_index, 0]

before(async () => {
  cluster = await SignerCluster.start({
    edit: (config) => {
      config.budget_fee_caps = 3
    },
    where: 'apart',
  })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.equal(answer.body.rule, rule)
  assert.ok(answer.status >= 400 && answer.status < 500)
  assert.equal(typeof answer.body.message, 'string')
}
const ethOf = (amount: number | string = 1, more: Record<string, unknown> = {}) =>
  transfer(caller, { asset: 'ETH', amount, destination_address: SINK_ETH, ...more })

/**
 * Nothing that is signed here changes the nonces of other tests: each test uses its own
 * sub-account, and therefore its own address.
 */
let next = 100
async function fresh(): Promise<{ mine: Caller; path: number[] }> {
  const mine = await workspace.caller(next)
  return { mine, path: [next++, ETH.chain_index, 0] }
}

describe("rule 7: refuses a transaction that differs from the caller's request", () => {
  test('a payment to an exchange goes to the signed address, whatever account is stated', async () => {
    const to = { destination_type: 'EXCHANGE', destination_id: randomUUID() }
    refused(
      await workspace.sign(pay(await ethOf(1, to)), eth(from, { value: ONE, to: OTHER })),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(
        pay(await ethOf(1, { ...to, confirm_address: OTHER })),
        eth(from, { value: ONE, to: OTHER }),
      ),
      'DESTINATION_MISMATCH',
      7,
    )
    const mine = await workspace.caller()
    const request = await transfer(mine, {
      asset: 'ETH',
      amount: 1,
      destination_address: SINK_ETH,
      ...to,
    })
    const answer = await workspace.sign(
      pay(request),
      eth([mine.sub_account, ETH.chain_index, 0], { value: ONE }),
    )
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  })
  test('refuses another destination', async () =>
    refused(
      await workspace.sign(pay(await ethOf()), eth(from, { value: ONE, to: OTHER })),
      'DESTINATION_MISMATCH',
      7,
    ))
  test('refuses another destination of a token transfer', async () => {
    const request = await transfer(caller, {
      asset: 'USDT_ETH',
      amount: 5,
      destination_address: SINK_ETH,
    })
    refused(
      await workspace.sign(pay(request), usdt(from, OTHER, 5_000_000n)),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(pay(request), usdt(from, SINK_ETH, 5_000_001n)),
      'AMOUNT_MISMATCH',
      7,
    )
    refused(await workspace.sign(pay(request), eth(from, { value: 5n })), 'ASSET_MISMATCH', 7)
  })
  test('refuses another amount', async () => {
    refused(
      await workspace.sign(pay(await ethOf()), eth(from, { value: ONE + 1n })),
      'AMOUNT_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(pay(await ethOf()), eth(from, { value: ONE - 1n })),
      'AMOUNT_MISMATCH',
      7,
    )
    // A double would round this amount.
    refused(
      await workspace.sign(
        pay(await ethOf('0.123456789012345678')),
        eth(from, { value: 123_456_789_012_345_680n }),
      ),
      'AMOUNT_MISMATCH',
      7,
    )
  })
  test('refuses another asset', async () =>
    refused(
      await workspace.sign(pay(await ethOf()), usdt(from, SINK_ETH, 1_000_000n)),
      'ASSET_MISMATCH',
      7,
    ))
  test('refuses another network', async () =>
    refused(
      await workspace.sign(pay(await ethOf()), { ...eth(from, { value: ONE }), network: 'BTC' }),
      'NETWORK_MISMATCH',
      7,
    ))
  test('refuses call data, bytes that cannot be decoded, and trailing bytes', async () => {
    refused(
      await workspace.sign(pay(await ethOf()), eth(from, { value: ONE, data: '0xdeadbeef' })),
      'CONTRACT_MISMATCH',
      5,
    )
    refused(await workspace.sign(pay(await ethOf()), { ...eth(from), bytes: '02c0' }), 'SHAPE', 7)
    const good = eth(from, { value: ONE })
    refused(
      await workspace.sign(pay(await ethOf()), { ...good, bytes: `${good.bytes}00` }),
      'SHAPE',
      7,
    )
  })
})

describe('rule 5: checks contract and chain', () => {
  test('refuses a payment to a contract of the registry, even if the caller signed it', async () => {
    const contract = registry.asset('USDC_ETH')?.contract_address as string
    for (const [asset, unsigned] of [
      ['ETH', eth(from, { value: ONE, to: contract })],
      ['USDT_ETH', usdt(from, contract, 1_000_000n)],
    ] as const) {
      const request = await transfer(caller, { asset, amount: 1, destination_address: contract })
      const answer = await workspace.sign(pay(request), unsigned)
      refused(answer, 'BAD_REQUEST_FIELD', 2)
      assert.match(answer.body.message, /destination_address.*is the contract of USDC_ETH/)
    }
  })
  test('refuses another contract', async () => {
    const request = await transfer(caller, {
      asset: 'USDT_ETH',
      amount: 5,
      destination_address: SINK_ETH,
    })
    refused(
      await workspace.sign(pay(request), usdt(from, SINK_ETH, 5_000_000n, { to: OTHER })),
      'CONTRACT_MISMATCH',
      5,
    )
  })
  test('refuses another chain id', async () =>
    refused(
      await workspace.sign(pay(await ethOf()), eth(from, { value: ONE, chainId: 1 })),
      'CHAIN_ID_MISMATCH',
      5,
    ))
  test('refuses an unknown asset', async () =>
    refused(
      await workspace.sign(
        pay(await transfer(caller, { asset: 'NOPE', amount: 1, destination_address: SINK_ETH })),
        eth(from, { value: ONE }),
      ),
      'UNKNOWN_ASSET',
      5,
    ))
})

describe('rule 8: checks inputs, change and paths', () => {
  const path = (sub: number, index: number): number[] => [sub, BTC.chain_index, index]
  const request = () =>
    transfer(caller, { asset: 'BTC', amount: 0.001, destination_address: SINK_BTC })
  test('refuses change to another address or on another path', async () => {
    const source = funding(workspace, [{ path: path(1, 0), value: 200_000n }])
    const inputs = [{ funding: source, output: 0, path: path(1, 0) }]
    const thief = Buffer.from(`0014${'77'.repeat(20)}`, 'hex')
    refused(
      await workspace.sign(
        pay(await request()),
        btc(workspace, {
          inputs,
          amount: 100_000n,
          change: { path: path(1, 0x7fffffff), value: 90_000n, script: thief },
        }),
      ),
      'CHANGE_MISMATCH',
      8,
    )
    refused(
      await workspace.sign(
        pay(await request()),
        btc(workspace, { inputs, amount: 100_000n, change: { path: path(1, 5), value: 90_000n } }),
      ),
      'CHANGE_MISMATCH',
      8,
    )
    refused(
      await workspace.sign(
        pay(await request()),
        btc(workspace, {
          inputs,
          amount: 100_000n,
          change: { path: path(2, 0x7fffffff), value: 90_000n },
        }),
      ),
      'CHANGE_MISMATCH',
      8,
    )
    const undeclared = btc(workspace, {
      inputs,
      amount: 100_000n,
      change: { path: path(1, 0x7fffffff), value: 90_000n, script: thief },
    })
    delete undeclared.change
    refused(await workspace.sign(pay(await request()), undeclared), 'SHAPE', 7)
  })
  test('refuses an input of another sub-account', async () => {
    const source = funding(workspace, [{ path: path(2, 0), value: 110_000n }])
    refused(
      await workspace.sign(
        pay(await request()),
        btc(workspace, {
          inputs: [{ funding: source, output: 0, path: path(2, 0) }],
          amount: 100_000n,
        }),
      ),
      'FOREIGN_PATH',
      8,
    )
    // With a path of the caller's own wallet, the same input does not belong to the key at that
    // path.
    refused(
      await workspace.sign(
        pay(await request()),
        btc(workspace, {
          inputs: [{ funding: source, output: 0, path: path(1, 0) }],
          amount: 100_000n,
        }),
      ),
      'PREVIOUS_TRANSACTION',
      8,
    )
  })
  test("refuses paths outside the payer's wallet, such as the tank or a deposit address", async () => {
    for (const foreign of [[0, 60, 0], [1, 60, 1], [1, 0, 0], [2, 60, 0], [1, 60], []])
      refused(
        await workspace.sign(pay(await ethOf()), eth(foreign, { value: ONE })),
        'FOREIGN_PATH',
        8,
      )
  })
  test('refuses a previous transaction with false amounts', async () => {
    const source = funding(workspace, [{ path: path(1, 0), value: 200_000n }])
    const inputs = [{ funding: source, output: 0, path: path(1, 0) }]
    const honest = btc(workspace, {
      inputs,
      amount: 100_000n,
      change: { path: path(1, 0x7fffffff), value: 90_000n },
    })
    // The lie states a smaller value of the input, so that the difference would be paid to the
    // miner.
    const lie = source.clone()
    lie.outs[0]!.value = 195_000n
    refused(
      await workspace.sign(pay(await request()), {
        ...honest,
        inputs: [{ path: path(1, 0), previous: lie.toHex() }],
      }),
      'PREVIOUS_TRANSACTION',
      8,
    )
    refused(
      await workspace.sign(pay(await request()), { ...honest, inputs: [{ path: path(1, 0) }] }),
      'PREVIOUS_TRANSACTION',
      8,
    )
  })
})

describe('rule 9: checks fees', () => {
  test("refuses a fee above the node's cap", async () => {
    refused(
      await workspace.sign(
        pay(await ethOf()),
        eth(from, { value: ONE, gas: 1_000_000n, maxFeePerGas: 200_000_000_000n }),
      ),
      'FEE_CAP',
      9,
    )
    const source = funding(workspace, [{ path: [1, BTC.chain_index, 0], value: 5_000_000n }])
    const request = await transfer(caller, {
      asset: 'BTC',
      amount: 0.001,
      destination_address: SINK_BTC,
    })
    refused(
      await workspace.sign(
        pay(request),
        btc(workspace, {
          inputs: [{ funding: source, output: 0, path: [1, BTC.chain_index, 0] }],
          amount: 100_000n,
        }),
      ),
      'FEE_CAP',
      9,
    )
  })
  test("refuses a fee above the caller's own rate", async () => {
    refused(
      await workspace.sign(
        pay(await ethOf(1, { fee_rate: 1.5 })),
        eth(from, { value: ONE, maxFeePerGas: 1_500_000_001n }),
      ),
      'FEE_RATE',
      9,
    )
    const source = funding(workspace, [{ path: [1, BTC.chain_index, 0], value: 200_000n }])
    const request = await transfer(caller, {
      asset: 'BTC',
      amount: 0.001,
      destination_address: SINK_BTC,
      fee_rate: 10,
    })
    refused(
      await workspace.sign(
        pay(request),
        btc(workspace, {
          inputs: [{ funding: source, output: 0, path: [1, BTC.chain_index, 0] }],
          amount: 100_000n,
          change: { path: [1, BTC.chain_index, 0x7fffffff], value: 95_000n },
        }),
      ),
      'FEE_RATE',
      9,
    )
    refused(
      await workspace.sign(
        pay(request),
        btc(workspace, {
          inputs: [{ funding: source, output: 0, path: [1, BTC.chain_index, 0] }],
          amount: 100_000n,
        }),
      ),
      'FEE_RATE',
      9,
    )
  })
})

describe('rules 1 and 2: check who may send a request', () => {
  const order = () => eth(from, { value: ONE })
  test('refuses a key that is not enrolled', async () => {
    const stranger = { api_key: randomUUID(), sub_account: 1 }
    refused(
      await workspace.sign(
        pay(await transfer(stranger, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })),
        order(),
      ),
      'NOT_ENROLLED',
      1,
    )
  })
  test('a key that is enrolled at one node only is refused by the partner node', async () => {
    const half = await workspace.caller(1, 'full', [1])
    const request = await transfer(half, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    refused(await workspace.sign(pay(request), order(), [1, 2]), 'NOT_ENROLLED', 1)
  })
  test('refuses an enrolled name with another RSA key', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4096 })
    const request = await transfer(
      caller,
      { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
      { privateKey },
    )
    refused(await workspace.sign(pay(request), order()), 'NOT_AUTHENTIC', 2)
  })
  test('refuses keys without the role full, and revoked keys', async () => {
    for (const role of ['read-only', 'approve'] as const) {
      const reader = await workspace.caller(1, role)
      refused(
        await workspace.sign(
          pay(await transfer(reader, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })),
          order(),
        ),
        'READ_ONLY',
        2,
      )
    }
    const gone = await workspace.caller(1)
    await cluster.everywhere('revoke', { api_key: gone.api_key })
    refused(
      await workspace.sign(
        pay(await transfer(gone, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })),
        order(),
      ),
      'NOT_ENROLLED',
      1,
    )
    const [again] = await cluster.everywhere('enrol', {
      api_key: gone.api_key,
      public_key_pem: 'x',
      role: 'full',
      workspace: workspace.name,
      sub_account: 'sub-1',
    })
    assert.notEqual(again!.status, 200)
  })
  test('refuses another workspace', async () => {
    const second = await cluster.workspace()
    refused(await second.sign(pay(await ethOf()), order()), 'WORKSPACE_MISMATCH', 2)
  })
  test('refuses a changed body, another URI and another method', async () => {
    const request = await ethOf()
    refused(
      await workspace.sign(
        pay({ ...request, body: request.body.replace('"amount":1', '"amount":2') }),
        eth(from, { value: 2n * ONE }),
      ),
      'NOT_AUTHENTIC',
      2,
    )
    refused(
      await workspace.sign(pay({ ...request, body: `${request.body} ` }), order()),
      'NOT_AUTHENTIC',
      2,
    )
    refused(
      await workspace.sign(pay({ ...request, uri: '/dac/v1/transactions' }), order()),
      'NOT_AUTHENTIC',
      2,
    )
    const payment = { asset: 'ETH', amount: 1, destination_address: SINK_ETH }
    const unclaimed = await transfer(caller, payment, { claims: { method: undefined } })
    for (const changed of [
      { uri: '/dac/v1/transaction?x=1' },
      { method: 'PUT' },
      { method: 'post' },
    ]) {
      // A token with the claim `method` is valid for this method and exactly this query only.
      refused(await workspace.sign(pay({ ...request, ...changed }), order()), 'NOT_AUTHENTIC', 2)
      refused(
        await workspace.sign(pay({ ...unclaimed, ...changed }), order()),
        'ACTION_NOT_ALLOWED',
        2,
      )
    }
    const elsewhere = await signRequest({
      apiKey: caller.api_key,
      privateKey: (await import('../../testing/signer-cluster.ts')).callerKey,
      method: 'POST',
      uri: '/dac/v1/estimate-fee',
      body: request.body,
    })
    refused(await workspace.sign(pay(elsewhere), order()), 'ACTION_NOT_ALLOWED', 2)
  })
  test('a refund follows the rules of a payment, and its URI path has one valid form', async () => {
    const invoice = `inv_${'0a'.repeat(16)}`
    const { mine, path } = await fresh()
    const refund = (uri: string, more: { method?: string } = {}) =>
      transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH }, { uri, ...more })
    const good = await refund(`/dac/v1/invoices/${invoice}/refund`)
    refused(await workspace.sign(pay(good), eth(path, { value: ONE + 1n })), 'AMOUNT_MISMATCH', 7)
    refused(
      await workspace.sign(pay(good), eth(path, { value: ONE, to: OTHER })),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(pay({ ...good, uri: '/dac/v1/transaction' }), eth(path, { value: ONE })),
      'NOT_AUTHENTIC',
      2,
    )
    for (const uri of [
      `/dac/v1/invoices/${invoice}/refund/`,
      `/dac/v1/invoices/${invoice.toUpperCase()}/refund`,
      `/dac/v1/invoices/${invoice}0/refund`,
      `/dac/v1/invoices/${invoice}/cancel`,
      `/dac/v1/invoices/../refund`,
      `//dac/v1/invoices/${invoice}/refund`,
      `/dac/v1/invoices/${invoice}/refund?x=1`,
      `/dac/v1/invoices/${invoice}/refund\n`,
    ])
      refused(
        await workspace.sign(pay(await refund(uri)), eth(path, { value: ONE })),
        'ACTION_NOT_ALLOWED',
        2,
      )
    assert.equal((await workspace.sign(pay(good), eth(path, { value: ONE }))).status, 200)
  })
  test('refuses a re-encoded token, by padding, another header, or alg none', async () => {
    const request = await ethOf()
    const [head, payload, signature] = request.token.split('.') as [string, string, string]
    refused(
      await workspace.sign(pay({ ...request, token: `${head}.${payload}.${signature}=` }), order()),
      'NOT_AUTHENTIC',
      2,
    )
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    refused(
      await workspace.sign(pay({ ...request, token: `${none}.${payload}.` }), order()),
      'NOT_AUTHENTIC',
      2,
    )
  })
  test('refuses duplicate and unknown fields and wrong types', async () => {
    const plain = `"asset":"ETH","destination_address":"${SINK_ETH}","destination_type":"EXTERNAL","source_type":"INTERNAL"`
    const bodies = [
      `{${plain},"amount":1,"amount":1}`,
      `{${plain},"amount":1,"adress_tag":"7"}`,
      `{${plain},"amount":-1}`,
      `{${plain},"amount":0}`,
      `{${plain},"amount":true}`,
      `{${plain},"amount":1e-30}`,
      `{${plain}}`,
      '[]',
      'null',
      '',
      '{',
      `{${plain.replace('EXTERNAL', 'INTERNAL')},"amount":1}`,
      `{${plain},"amount":1,"address_tag":"1"}`,
      `{${plain},"amount":1,"fee_level":"max"}`,
      `{${plain},"amount":1,"type":"Deposit"}`,
      `{${plain},"amount":1,"sequence_id":7}`,
    ]
    for (const body of bodies)
      refused(
        await workspace.sign(pay(await transfer(caller, body)), order()),
        'BAD_REQUEST_FIELD',
        2,
      )
  })
})

describe('rule 3: checks the age of a request', () => {
  const aged = (seconds: number) =>
    ethOf().then(() =>
      transfer(
        caller,
        { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
        { now: now() - seconds },
      ),
    )
  test('refuses requests older than 24 hours or 7 days, and requests from the future', async () => {
    refused(await workspace.sign(pay(await aged(86_500)), eth(from, { value: ONE })), 'TOO_OLD', 3)
    refused(
      await workspace.sign(pay(await aged(8 * 86_400)), eth(from, { value: ONE })),
      'TOO_OLD',
      3,
    )
    refused(
      await workspace.sign(pay(await aged(-3600)), eth(from, { value: ONE })),
      'NOT_AUTHENTIC',
      2,
    )
  })
  test('signs a receipt only for a valid request, and accepts it for no other request', async () => {
    refused(await cluster.post(1, '/receipt', { request: await aged(600) }), 'TOO_OLD', 3)
    const live = await ethOf()
    const { status, body } = await cluster.post(1, '/receipt', { request: live })
    assert.equal(status, 200)
    assert.equal(body.receipt.api_key, caller.api_key)
    // The node's own statement, attached to an old request, proves nothing.
    const old = await aged(86_500)
    refused(await workspace.sign(pay(old, [body]), eth(from, { value: ONE })), 'TOO_OLD', 3)
    const forged = { ...body, receipt: { ...body.receipt, seen_at: 1 } }
    refused(await workspace.sign(pay(old, [forged]), eth(from, { value: ONE })), 'TOO_OLD', 3)
  })
  test('one call for many receipts gives each request its own result, even if they conflict', async () => {
    const { mine } = await fresh()
    const of = (amount: number, more: Parameters<typeof transfer>[2] = {}) =>
      transfer(mine, { asset: 'ETH', amount, destination_address: SINK_ETH }, more)
    const nonce = randomUUID()
    const [one, same, other, last] = [
      await of(1, { nonce }),
      await of(1, { nonce }),
      await of(2, { nonce }),
      await of(3),
    ]
    const forged = { ...one, body: one.body.replace('1', '9') }
    const requests = [
      one,
      await aged(600),
      { token: 'x' },
      'none',
      forged,
      same,
      other,
      last,
      { ...last, uri: 'x'.repeat(3000) },
    ]
    const { status, body } = await cluster.post(1, '/receipts', { requests })
    assert.equal(status, 200, JSON.stringify(body))
    const answers = body.answers as {
      status: number
      body: { error?: string; receipt?: { nonce: string; api_key: string } }
    }[]
    assert.deepEqual(
      answers.map((each) => each.body.error ?? each.status),
      [
        200,
        'TOO_OLD',
        'BAD_ORDER',
        'BAD_ORDER',
        'NOT_AUTHENTIC',
        200,
        'INTENT_CONFLICT',
        200,
        'BAD_ORDER',
      ],
    )
    assert.deepEqual(
      [0, 5].map((at) => answers[at]!.body.receipt?.nonce),
      [nonce, nonce],
    )
    assert.deepEqual(
      answers[7]!.body,
      (await cluster.post(1, '/receipt', { request: last })).body,
      'as alone',
    )
    refused(await cluster.post(1, '/receipts', { requests: [] }), 'BAD_ORDER', 0)
    refused(
      await cluster.post(1, '/receipts', { requests: Array.from({ length: 65 }, () => one) }),
      'BAD_ORDER',
      0,
    )
  })
})

describe('rules 4 and 6: one request results in one payment', () => {
  test('refuses a second transaction for one request, also after a restart or platform rollback', async () => {
    const { mine, path } = await fresh()
    const request = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    const first = eth(path, { value: ONE, nonce: 0 })
    const answer = await workspace.sign(pay(request), first)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    const second = eth(path, { value: ONE, nonce: 1 })
    for (const pair of [
      [1, 2],
      [2, 1],
      [1, 3],
      [3, 2],
    ] as const)
      refused(await workspace.sign(pay(request), second, pair), 'NOT_EXCLUSIVE', 6)
    // The nodes are stopped in order: a node that is killed may lose a finished signature of the
    // last 100 ms, which it would then create again.
    for (const node of [1, 2]) {
      await cluster.kill(node, 'SIGTERM')
      await cluster.run(node)
    }
    refused(await workspace.sign(pay(request), second), 'NOT_EXCLUSIVE', 6)
    // The platform has lost its state and builds the transaction again: the same request, but other
    // bytes.
    refused(
      await workspace.sign(
        pay(request),
        eth(path, { value: ONE, nonce: 1, maxFeePerGas: 3_000_000_000n }),
      ),
      'NOT_EXCLUSIVE',
      6,
    )
    // The refusal contains the recorded transaction, so that a platform that has lost its state can
    // continue with it.
    const response = await workspace.sign(pay(request), second)
    assert.equal(response.body.recorded.unsigned.bytes, first.bytes)
    assert.deepEqual(response.body.recorded.signed, {
      raw: answer.body.signed.raw,
      hash: answer.body.signed.hash,
    })
    // Every pair returns the same bytes each time.
    for (const pair of [
      [1, 2],
      [2, 1],
      [3, 1],
      [3, 2],
    ] as const) {
      const same = await workspace.sign(pay(request), first, pair)
      assert.equal(same.status, 200, JSON.stringify(same.body))
      assert.deepEqual(same.body, answer.body)
    }
    // A fee bump with the same nonce excludes the first transaction.
    assert.equal(
      (
        await workspace.sign(
          pay(request),
          eth(path, { value: ONE, nonce: 0, maxFeePerGas: 3_000_000_000n }),
        )
      ).status,
      200,
    )
  })
  test('BTC: a replacement must share an input with every earlier transaction', async () => {
    const mine = await workspace.caller(next)
    const path = (index: number): number[] => [next, BTC.chain_index, index]
    const source = funding(
      workspace,
      [0, 1, 2].map((index) => ({ path: path(index), value: 105_000n })),
    )
    const input = (index: number) => ({ funding: source, output: index, path: path(index) })
    const request = await transfer(mine, {
      asset: 'BTC',
      amount: 0.001,
      destination_address: SINK_BTC,
    })
    const order = (inputs: number[], change = 0n) =>
      btc(workspace, {
        inputs: inputs.map(input),
        amount: 100_000n,
        ...(change > 0n ? { change: { path: path(0x7fffffff), value: change } } : {}),
      })
    assert.equal((await workspace.sign(pay(request), order([0]))).status, 200)
    refused(await workspace.sign(pay(request), order([1])), 'NOT_EXCLUSIVE', 6)
    const wide = await workspace.sign(pay(request), order([0, 1], 100_000n))
    assert.equal(wide.status, 200, JSON.stringify(wide.body))
    refused(await workspace.sign(pay(request), order([1, 2], 100_000n)), 'NOT_EXCLUSIVE', 6)
    next++
  })
  test('a repeated sequence_id is accepted for the same payment and refused for another', async () => {
    const { mine, path } = await fresh()
    const make = (amount: number) =>
      transfer(mine, {
        asset: 'ETH',
        amount,
        destination_address: SINK_ETH,
        sequence_id: 'order-7',
      })
    const unsigned = eth(path, { value: ONE, nonce: 0 })
    const first = await workspace.sign(pay(await make(1)), unsigned)
    assert.equal(first.status, 200)
    const alias = await workspace.sign(pay(await make(1)), unsigned)
    assert.deepEqual(alias.body, first.body)
    refused(
      await workspace.sign(pay(await make(1)), eth(path, { value: ONE, nonce: 1 })),
      'NOT_EXCLUSIVE',
      6,
    )
    refused(
      await workspace.sign(pay(await make(2)), eth(path, { value: 2n * ONE, nonce: 1 })),
      'INTENT_CONFLICT',
      4,
    )
    // Another API user of the same sub-account has the same wallet.
    const twin = await workspace.caller(mine.sub_account)
    const other = await transfer(twin, {
      asset: 'ETH',
      amount: 1,
      destination_address: SINK_ETH,
      sequence_id: 'order-7',
    })
    refused(
      await workspace.sign(pay(other), eth(path, { value: ONE, nonce: 1 })),
      'NOT_EXCLUSIVE',
      6,
    )
  })
  test('refuses a caller’s nonce that was used for another request', async () => {
    const { mine, path } = await fresh()
    const nonce = randomUUID()
    const one = await transfer(
      mine,
      { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
      { nonce },
    )
    const two = await transfer(
      mine,
      { asset: 'ETH', amount: 2, destination_address: SINK_ETH },
      { nonce },
    )
    assert.equal((await workspace.sign(pay(one), eth(path, { value: ONE, nonce: 0 }))).status, 200)
    refused(
      await workspace.sign(pay(two), eth(path, { value: 2n * ONE, nonce: 1 })),
      'INTENT_CONFLICT',
      4,
    )
    const named = await transfer(
      mine,
      { asset: 'ETH', amount: 1, destination_address: SINK_ETH, sequence_id: 'x' },
      { nonce },
    )
    refused(
      await workspace.sign(pay(named), eth(path, { value: ONE, nonce: 1 })),
      'INTENT_CONFLICT',
      4,
    )
    // This also applies if the first request was only shown to the nodes.
    const shown = randomUUID()
    assert.equal(
      (
        await cluster.post(2, '/receipt', {
          request: await transfer(
            mine,
            { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
            { nonce: shown },
          ),
        })
      ).status,
      200,
    )
    refused(
      await workspace.sign(
        pay(
          await transfer(
            mine,
            { asset: 'ETH', amount: 2, destination_address: SINK_ETH },
            { nonce: shown },
          ),
        ),
        eth(path, { value: 2n * ONE, nonce: 1 }),
      ),
      'INTENT_CONFLICT',
      4,
    )
  })
  test('concurrent orders for one request are signed with at most one account nonce', async () => {
    const { mine, path } = await fresh()
    const request = await transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    await workspace.sign(
      pay(await transfer(mine, { asset: 'ETH', amount: 9, destination_address: SINK_ETH })),
      eth(path, { value: 9n * ONE, nonce: 0 }),
    )
    const answers = await Promise.all([
      workspace.sign(pay(request), eth(path, { value: ONE, nonce: 0 }), [1, 2]),
      workspace.sign(pay(request), eth(path, { value: ONE, nonce: 1 }), [2, 3]),
      workspace.sign(
        pay(request),
        eth(path, { value: ONE, nonce: 1, maxFeePerGas: 1_000_000_000n }),
        [3, 1],
      ),
    ])
    const nonces = new Set(
      answers.flatMap((answer, at) => (answer.status === 200 ? [at === 0 ? 0 : 1] : [])),
    )
    assert.ok(nonces.size <= 1, JSON.stringify(answers.map((answer) => answer.body)))
  })
})

describe('rule 10: checks nonces', () => {
  test('refuses a nonce that skips many values', async () => {
    const { mine, path } = await fresh()
    const make = () => transfer(mine, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
    refused(
      await workspace.sign(pay(await make()), eth(path, { value: ONE, nonce: 1 })),
      'NONCE_GAP',
      10,
    )
    assert.equal(
      (await workspace.sign(pay(await make()), eth(path, { value: ONE, nonce: 0 }), [1, 2])).status,
      200,
    )
    // Node 3 took no part, and receives the record from its peers.
    assert.equal(
      (await workspace.sign(pay(await make()), eth(path, { value: ONE, nonce: 1 }), [3, 2])).status,
      200,
    )
    refused(
      await workspace.sign(pay(await make()), eth(path, { value: ONE, nonce: 3 }), [3, 1]),
      'NONCE_GAP',
      10,
    )
  })
})

describe('rules 11 and 12: check gas funding and sweeps', () => {
  const tank = [0, ETH.chain_index, 0]
  const GAS = { gas: '65000', max_fee_per_gas: '2000000000' }
  const MOST = (65_000n * 2_000_000_000n * 12n) / 10n
  let nonce = 0
  test('refuses gas funding without a payment request, or with a false one', async () => {
    refused(
      await workspace.sign({ kind: 'fuel', ...GAS }, eth(tank, { value: 1n, to: SINK_ETH })),
      'FUEL_WITHOUT_INTENT',
      11,
    )
    const request = await ethOf()
    refused(
      await workspace.sign(
        { kind: 'fuel', for: pay({ ...request, body: '{}' }), ...GAS },
        eth(tank, { value: 1n }),
      ),
      'NOT_AUTHENTIC',
      2,
    )
    const bitcoin = await transfer(caller, {
      asset: 'BTC',
      amount: 1,
      destination_address: SINK_BTC,
    })
    refused(
      await workspace.sign({ kind: 'fuel', for: pay(bitcoin), ...GAS }, eth(tank, { value: 1n })),
      'FUEL_WITHOUT_INTENT',
      11,
    )
  })
  test('refuses gas funding to or from another address, too large, too expensive, or repeated', async () => {
    const { mine, path } = await fresh()
    const to = workspace.address(ETH, path)
    const request = await transfer(mine, {
      asset: 'USDT_ETH',
      amount: 1,
      destination_address: SINK_ETH,
    })
    const purpose = { kind: 'fuel', for: pay(request), ...GAS }
    refused(
      await workspace.sign(purpose, eth(tank, { value: MOST, to: OTHER, nonce })),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(purpose, eth(tank, { value: MOST + 1n, to, nonce })),
      'FUEL_TOO_LARGE',
      11,
    )
    refused(
      await workspace.sign(
        { ...purpose, max_fee_per_gas: '9000000000000' },
        eth(tank, { value: MOST, to, nonce }),
      ),
      'FUEL_TOO_LARGE',
      11,
    )
    refused(
      await workspace.sign(
        { ...purpose, l1_fee: '100000000000000001' },
        eth(tank, { value: MOST, to, nonce }),
      ),
      'FUEL_TOO_LARGE',
      11,
    )
    refused(
      await workspace.sign(purpose, eth(path, { value: MOST, to, nonce: 0 })),
      'FOREIGN_PATH',
      8,
    )
    refused(await workspace.sign(purpose, usdt(tank, to, 1n, { nonce })), 'ASSET_MISMATCH', 7)
    const good = await workspace.sign(purpose, eth(tank, { value: MOST, to, nonce: nonce++ }))
    assert.equal(good.status, 200, JSON.stringify(good.body))
    refused(
      await workspace.sign(purpose, eth(tank, { value: MOST, to, nonce })),
      'NOT_EXCLUSIVE',
      6,
    )
    const careful = await transfer(mine, {
      asset: 'USDT_ETH',
      amount: 1,
      destination_address: SINK_ETH,
      fee_rate: 1,
    })
    refused(
      await workspace.sign(
        { ...purpose, for: pay(careful) },
        eth(tank, { value: MOST, to, nonce }),
      ),
      'FEE_RATE',
      9,
    )
  })
  test('a sweep may go only to the omnibus address of its own sub-account', async () => {
    await workspace.caller(7)
    const deposit = [7, ETH.chain_index, 3]
    const omnibus = workspace.address(ETH, [7, ETH.chain_index, 0])
    const sweep = { kind: 'sweep', sub_account: 7, asset: 'USDT_ETH', address_index: 3 }
    refused(
      await workspace.sign(
        sweep,
        usdt(deposit, workspace.address(ETH, [8, ETH.chain_index, 0]), 5n),
      ),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await workspace.sign(sweep, usdt([7, ETH.chain_index, 4], omnibus, 5_000_000n)),
      'FOREIGN_PATH',
      8,
    )
    refused(
      await workspace.sign(
        { ...sweep, address_index: 0 },
        usdt([7, ETH.chain_index, 0], omnibus, 5_000_000n),
      ),
      'SWEEP_MISMATCH',
      12,
    )
    refused(
      await workspace.sign(
        { ...sweep, sub_account: 0 },
        usdt([0, ETH.chain_index, 3], omnibus, 5_000_000n),
      ),
      'FOREIGN_PATH',
      8,
    )
    refused(
      await workspace.sign({ ...sweep, asset: 'ETH' }, usdt(deposit, omnibus, 5_000_000n)),
      'ASSET_MISMATCH',
      7,
    )
    const fuel = await workspace.sign(
      { kind: 'fuel', for: sweep, ...GAS },
      eth(tank, { value: MOST, to: workspace.address(ETH, deposit), nonce: nonce++ }),
    )
    assert.equal(fuel.status, 200, JSON.stringify(fuel.body))
    const good = await workspace.sign(sweep, usdt(deposit, omnibus, 5_000_000n))
    assert.equal(good.status, 200, JSON.stringify(good.body))
  })
  test('enforces the budget of a gas tank for any 24 hours', async () => {
    const second = await cluster.workspace()
    const mine = await second.caller(1)
    const cap = BigInt(ETH.fee_cap)
    const to = second.address(ETH, [1, ETH.chain_index, 0])
    let spent = 0n
    let last: Answer | null = null
    for (let step = 0; step < 4; step++) {
      const request = await transfer(mine, {
        asset: 'USDT_ETH',
        amount: 1,
        destination_address: SINK_ETH,
      })
      last = await second.sign(
        { kind: 'fuel', for: pay(request), gas: '1', max_fee_per_gas: cap.toString() },
        eth(tank, { value: (cap * 12n) / 10n, to, nonce: step }),
      )
      if (last.status !== 200) break
      spent += (cap * 12n) / 10n
    }
    // The limit in this cluster is three fee caps.
    refused(last!, 'BUDGET', 11)
    assert.ok(spent <= 3n * cap)
  })
})

describe("rule 15: checks the operator's order", () => {
  test('empties a gas tank only as the operator ordered at each node', async () => {
    const second = await cluster.workspace()
    const tank = [0, ETH.chain_index, 0]
    refused(
      await second.sign({ kind: 'drain', order: 'none' }, eth(tank, { value: 5n })),
      'ORDER_UNKNOWN',
      15,
    )
    const order = randomUUID()
    assert.equal(
      (
        await cluster.operator(1, 'drain', {
          workspace: second.name,
          network: 'ETH',
          to_address: SINK_ETH,
          order,
        })
      ).status,
      200,
    )
    refused(
      await second.sign({ kind: 'drain', order }, eth(tank, { value: 5n })),
      'ORDER_UNKNOWN',
      15,
    )
    for (const node of [2, 3])
      await cluster.operator(node, 'drain', {
        workspace: second.name,
        network: 'ETH',
        to_address: SINK_ETH,
        order,
      })
    refused(
      await second.sign({ kind: 'drain', order }, eth(tank, { value: 5n, to: OTHER })),
      'DESTINATION_MISMATCH',
      7,
    )
    refused(
      await second.sign({ kind: 'drain', order }, eth([1, ETH.chain_index, 0], { value: 5n })),
      'FOREIGN_PATH',
      8,
    )
    refused(
      await workspace.sign({ kind: 'drain', order }, eth(tank, { value: 5n })),
      'WORKSPACE_MISMATCH',
      2,
    )
    const good = await second.sign({ kind: 'drain', order }, eth(tank, { value: 5n }))
    assert.equal(good.status, 200, JSON.stringify(good.body))
    refused(
      await second.sign({ kind: 'drain', order }, eth(tank, { value: 6n, nonce: 1 })),
      'NOT_EXCLUSIVE',
      6,
    )
    refused(
      await cluster.operator(1, 'drain', {
        workspace: second.name,
        network: 'ETH',
        to_address: OTHER,
        order,
      }),
      'ENROLMENT_CONFLICT',
      1,
    )
  })
})

describe('rule 1: enrolments are immutable', () => {
  test('accepts the same enrolment again, refuses a different one, and refuses the tank’s index', async () => {
    const { callerPem } = await import('../../testing/signer-cluster.ts')
    const enrolment = {
      api_key: randomUUID(),
      public_key_pem: callerPem,
      role: 'full',
      workspace: workspace.name,
      sub_account: 'main',
    }
    const { body } = await cluster.operator(1, 'enrol', enrolment)
    const answer = {
      enrolled: body.enrolled,
      node: body.node,
      api_key: body.api_key,
      role: body.role,
      workspace: body.workspace,
      sub_account: body.sub_account,
    }
    assert.deepEqual(answer, {
      enrolled: true,
      node: 1,
      api_key: enrolment.api_key,
      role: 'full',
      workspace: workspace.name,
      sub_account: 'main',
    })
    assert.equal(
      body.key_fingerprint,
      createHash('sha256')
        .update(createPublicKey(callerPem).export({ type: 'spki', format: 'der' }))
        .digest('hex'),
    )
    assert.equal(body.new, true)
    const again = (await cluster.operator(1, 'enrol', enrolment)).body
    assert.deepEqual([again.new, again.sub_account_index], [false, body.sub_account_index])
    refused(
      await cluster.operator(1, 'enrol', { ...enrolment, sub_account: 'other' }),
      'ENROLMENT_CONFLICT',
      1,
    )
    refused(
      await cluster.operator(1, 'enrol', { ...enrolment, workspace: 'other' }),
      'ENROLMENT_CONFLICT',
      1,
    )
    refused(
      await cluster.operator(1, 'enrol', { ...enrolment, role: 'read-only' }),
      'ENROLMENT_CONFLICT',
      1,
    )
    assert.equal(
      (await cluster.operator(1, 'enrol', { ...enrolment, api_key: randomUUID(), index: 0 }))
        .status,
      400,
    )
    assert.equal(
      (
        await cluster.operator(1, 'enrol', {
          ...enrolment,
          api_key: randomUUID(),
          public_key_pem: generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
            type: 'spki',
            format: 'pem',
          }),
        })
      ).status,
      422,
    )
  })
})
