import { tron, type Network, type TronAction, type UnsignedTransaction } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  SignerCluster,
  now,
  pay,
  registry,
  transfer,
  type Answer,
  type Caller,
} from '../../../testing/signer-cluster.ts'
import type { Workspace } from '../../../testing/signer-cluster.ts'

/**
 * Tron's Stake 2.0: a hostile platform stakes more, stakes for another address, or changes a stake
 * into another operation; both nodes refuse it.
 */
const TRX = registry.network('TRX') as Network
const FRIEND = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const THIEF = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
const TANK = [0, TRX.chain_index, 0]
let cluster: SignerCluster
let workspace: Workspace
let next = 1
let turn = 0

before(async () => {
  cluster = await SignerCluster.start({
    edit: (config) => {
      config.budget_fee_caps = 1
    },
    engine: 'double',
  })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.equal(answer.body.rule, rule)
}
function signed(answer: Answer): Answer {
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer
}
async function fresh(): Promise<{ caller: Caller; path: number[]; own: string }> {
  const path = [next++, TRX.chain_index, 0]
  return { caller: await workspace.caller(path[0]), path, own: workspace.address(TRX, path) }
}
const reference = (): tron.TronReference => ({
  ...tron.refBlock(70_000_000, '00000000042c1d80a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778'),
  expiration: (now() + 600) * 1000,
  timestamp: Date.now() + turn++,
})
const built = (
  path: number[],
  action: Partial<TronAction> & Pick<TronAction, 'kind'>,
): UnsignedTransaction =>
  tron.buildAction(TRX, {
    resource: 'ENERGY',
    amount: 100_000_000n,
    receiver: FRIEND,
    ...action,
    reference: reference(),
    path,
    publicKey: workspace.publicKeyAt(path),
  })
const asks = (caller: Caller, uri: string, more: Record<string, unknown> = {}) => {
  const fields: Record<string, unknown> = {
    asset: 'TRX',
    address: FRIEND,
    ...(uri.endsWith('release-unstaked') ? {} : { resource: 'ENERGY', amount: 100 }),
    ...more,
  }
  return transfer(caller, JSON.stringify(fields), { uri })
}
const stake = (request: SignedRequest, step: TronAction['kind']) => ({
  kind: 'stake',
  step,
  request,
})
const STEPS = ['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw'] as const

test('every pair signs each requested step once', async () => {
  const pairs = [
    [1, 2],
    [2, 3],
    [3, 1],
  ] as const
  for (const [uri, address, steps] of [
    ['/dav/v1/stake', 'own', ['freeze']],
    ['/dav/v1/stake', FRIEND, ['freeze', 'delegate']],
    ['/dav/v1/unstake', 'own', ['unfreeze']],
    ['/dav/v1/unstake', FRIEND, ['undelegate', 'unfreeze']],
    ['/dav/v1/release-unstaked', 'own', ['withdraw']],
    ['/dav/v1/release-unstaked', FRIEND, ['withdraw']],
  ] as const) {
    const { caller, path, own } = await fresh()
    const request = await asks(caller, uri, { address: address === 'own' ? own : address })
    for (const [at, step] of STEPS.entries()) {
      const unsigned = built(path, { kind: step })
      const answer = await workspace.sign(stake(request, step), unsigned, pairs[at % 3])
      if (!(steps as readonly string[]).includes(step)) {
        refused(answer, 'SHAPE', 7)
        continue
      }
      signed(answer)
      // A repeated order returns the same signature; another transaction of the step is refused.
      signed(await workspace.sign(stake(request, step), unsigned, pairs[(at + 1) % 3]))
      refused(
        await workspace.sign(stake(request, step), built(path, { kind: step }), pairs[at % 3]),
        'NOT_EXCLUSIVE',
        6,
      )
    }
  }
})

test('refuses another amount, resource, receiver or call', async () => {
  const { caller, path } = await fresh()
  const request = await asks(caller, '/dav/v1/stake')
  refused(
    await workspace.sign(
      stake(request, 'freeze'),
      built(path, { kind: 'freeze', amount: 100_000_001n }),
    ),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(request, 'freeze'),
      built(path, { kind: 'freeze', amount: 1_000_000n }),
    ),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(request, 'freeze'),
      built(path, { kind: 'freeze', resource: 'BANDWIDTH' }),
    ),
    'RESOURCE_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(request, 'delegate'),
      built(path, { kind: 'delegate', receiver: THIEF }),
    ),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(request, 'delegate'),
      built(path, { kind: 'delegate', amount: 200_000_000n }),
    ),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(request, 'delegate'),
      built(path, { kind: 'delegate', resource: 'BANDWIDTH' }),
    ),
    'RESOURCE_MISMATCH',
    7,
  )
  // A step under the name of another step is refused.
  for (const named of ['freeze', 'delegate'] as const)
    for (const kind of STEPS)
      if (kind !== named)
        refused(await workspace.sign(stake(request, named), built(path, { kind })), 'SHAPE', 7)
  const back = await asks(caller, '/dav/v1/unstake')
  refused(
    await workspace.sign(
      stake(back, 'undelegate'),
      built(path, { kind: 'undelegate', receiver: THIEF }),
    ),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(back, 'unfreeze'),
      built(path, { kind: 'unfreeze', amount: 99_999_999n }),
    ),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      stake(back, 'unfreeze'),
      built(path, { kind: 'unfreeze', resource: 'BANDWIDTH' }),
    ),
    'RESOURCE_MISMATCH',
    7,
  )
})

test('refuses a stake request for a payment, and a payment request for a stake', async () => {
  const { caller, path } = await fresh()
  const request = await asks(caller, '/dav/v1/stake')
  const payment = tron.buildTransfer(TRX, {
    asset: registry.asset('TRX')!,
    to: FRIEND,
    amount: 100_000_000n,
    reference: reference(),
    path,
    publicKey: workspace.publicKeyAt(path),
  })
  for (const step of ['freeze', 'delegate'] as const)
    refused(await workspace.sign(stake(request, step), payment), 'SHAPE', 7)
  refused(await workspace.sign(pay(request), payment), 'ACTION_NOT_ALLOWED', 2)
  const wanted = await transfer(caller, {
    asset: 'TRX',
    amount: '100',
    destination_address: FRIEND,
  })
  refused(
    await workspace.sign(stake(wanted, 'freeze'), built(path, { kind: 'freeze' })),
    'ACTION_NOT_ALLOWED',
    2,
  )
  refused(await workspace.sign(pay(wanted), built(path, { kind: 'freeze' })), 'SHAPE', 7)
  // A stake sent as an unstake is refused, because the request's signature covers the path.
  refused(
    await workspace.sign(
      stake({ ...request, uri: '/dav/v1/unstake' }, 'unfreeze'),
      built(path, { kind: 'unfreeze' }),
    ),
    'NOT_AUTHENTIC',
    2,
  )
  for (const uri of ['/dac/v1/stake', '/dav/v1/stake/', '/dav/v1/stakes'])
    refused(
      await workspace.sign(
        stake(await asks(caller, uri), 'freeze'),
        built(path, { kind: 'freeze' }),
      ),
      'ACTION_NOT_ALLOWED',
      2,
    )
})

test("accepts only the caller's own wallet, and no other sub-account, address or tank", async () => {
  const { caller, path } = await fresh()
  const request = await asks(caller, '/dav/v1/stake')
  for (const foreign of [
    [path[0]! + 500, TRX.chain_index, 0],
    [path[0]!, TRX.chain_index, 1],
    [path[0]!, TRX.chain_index + 1, 0],
    TANK,
  ]) {
    refused(
      await workspace.sign(stake(request, 'freeze'), built(foreign, { kind: 'freeze' })),
      'FOREIGN_PATH',
      8,
    )
    refused(
      await workspace.sign(stake(request, 'freeze'), {
        ...built(foreign, { kind: 'freeze' }),
        inputs: [{ path }],
      }),
      'FOREIGN_PATH',
      8,
    )
  }
  const reader = await workspace.caller(path[0], 'read-only')
  refused(
    await workspace.sign(
      stake(await asks(reader, '/dav/v1/stake'), 'freeze'),
      built(path, { kind: 'freeze' }),
    ),
    'READ_ONLY',
    2,
  )
  const elsewhere = await cluster.workspace()
  const stranger = await elsewhere.caller(path[0])
  refused(
    await workspace.sign(
      stake(await asks(stranger, '/dav/v1/stake'), 'freeze'),
      built(path, { kind: 'freeze' }),
    ),
    'WORKSPACE_MISMATCH',
    2,
  )
})

test('validates fields strictly, and requires the exact amount', async () => {
  const { caller, path } = await fresh()
  const freeze = built(path, { kind: 'freeze' })
  for (const [more, field] of [
    [{ lock: true }, 'lock'],
    [{ resource: 'TRON_POWER' }, 'resource'],
    [{ address: 'T1' }, 'address'],
    [{ amount: '1.0000001' }, 'amount'],
    [{ amount: 0 }, 'amount'],
    [{ asset: 'USDT_TRX' }, 'asset'],
    [{ asset: 'ETH' }, 'asset'],
    [{ resource: undefined }, 'resource'],
  ] as const) {
    const answer = await workspace.sign(
      stake(await asks(caller, '/dav/v1/stake', more), 'freeze'),
      freeze,
    )
    assert.deepEqual(
      [answer.body?.error, answer.body?.field],
      ['BAD_REQUEST_FIELD', field],
      JSON.stringify(answer.body),
    )
  }
  refused(
    await workspace.sign(
      stake(await asks(caller, '/dav/v1/release-unstaked', { amount: 100 }), 'withdraw'),
      built(path, { kind: 'withdraw' }),
    ),
    'BAD_REQUEST_FIELD',
    2,
  )
  assert.equal(
    (
      await workspace.sign(
        { kind: 'stake', step: 'vote', request: await asks(caller, '/dav/v1/stake') },
        freeze,
      )
    ).body.error,
    'BAD_ORDER',
  )
})

test('a sequence_id identifies one stake or payment only', async () => {
  const { caller, path, own } = await fresh()
  const sequence_id = randomUUID()
  const first = built(path, { kind: 'freeze' })
  signed(
    await workspace.sign(
      stake(await asks(caller, '/dav/v1/stake', { address: own, sequence_id }), 'freeze'),
      first,
    ),
  )
  // A retry with a new token returns the signed transaction, and nothing else.
  signed(
    await workspace.sign(
      stake(await asks(caller, '/dav/v1/stake', { address: own, sequence_id }), 'freeze'),
      first,
      [2, 3],
    ),
  )
  refused(
    await workspace.sign(
      stake(await asks(caller, '/dav/v1/stake', { address: own, sequence_id }), 'freeze'),
      built(path, { kind: 'freeze' }),
    ),
    'NOT_EXCLUSIVE',
    6,
  )
  refused(
    await workspace.sign(
      stake(
        await asks(caller, '/dav/v1/stake', { address: own, amount: 101, sequence_id }),
        'freeze',
      ),
      built(path, { kind: 'freeze', amount: 101_000_000n }),
    ),
    'INTENT_CONFLICT',
    4,
  )
  refused(
    await workspace.sign(
      stake(await asks(caller, '/dav/v1/unstake', { address: own, sequence_id }), 'unfreeze'),
      built(path, { kind: 'unfreeze' }),
    ),
    'INTENT_CONFLICT',
    4,
  )
  const payment = tron.buildTransfer(TRX, {
    asset: registry.asset('TRX')!,
    to: FRIEND,
    amount: 1_000_000n,
    reference: reference(),
    path,
    publicKey: workspace.publicKeyAt(path),
  })
  refused(
    await workspace.sign(
      pay(
        await transfer(caller, {
          asset: 'TRX',
          amount: '1',
          destination_address: FRIEND,
          sequence_id,
        }),
      ),
      payment,
    ),
    'INTENT_CONFLICT',
    4,
  )
})

test('receipts, voids and the maximum age apply as for every request', async () => {
  const { caller, path } = await fresh()
  const request = await asks(caller, '/dav/v1/stake')
  const response = await cluster.post(3, '/receipt', { request })
  assert.equal(response.status, 200, JSON.stringify(response.body))
  signed(await workspace.sign(stake(request, 'freeze'), built(path, { kind: 'freeze' })))
  assert.equal((await cluster.post(1, '/void', { request })).body.error, 'ALREADY_SIGNED')
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/void', { request, force: true })).body.voided, true)
  refused(
    await workspace.sign(stake(request, 'delegate'), built(path, { kind: 'delegate' })),
    'VOIDED',
    14,
  )
  const old = await transfer(
    caller,
    JSON.stringify({ asset: 'TRX', address: FRIEND, resource: 'ENERGY', amount: 100 }),
    { uri: '/dav/v1/stake', now: now() - 90_000 },
  )
  refused(await workspace.sign(stake(old, 'freeze'), built(path, { kind: 'freeze' })), 'TOO_OLD', 3)
})

test('gas funding of a stake goes to its own account once, up to its bandwidth cost', async () => {
  const { caller, path, own } = await fresh()
  const request = await asks(caller, '/dav/v1/stake')
  const purpose = {
    kind: 'fuel',
    for: stake(request, 'freeze'),
    gas: '560',
    max_fee_per_gas: '1000',
  }
  const fuel = (to: string, amount: bigint, from = TANK) =>
    tron.buildTransfer(TRX, {
      asset: registry.asset('TRX')!,
      to,
      amount,
      reference: reference(),
      path: from,
      publicKey: workspace.publicKeyAt(from),
    })
  refused(await workspace.sign(purpose, fuel(FRIEND, 1n)), 'DESTINATION_MISMATCH', 7)
  refused(await workspace.sign(purpose, fuel(own, 672_001n)), 'FUEL_TOO_LARGE', 11)
  refused(await workspace.sign(purpose, fuel(FRIEND, 1n, path)), 'FOREIGN_PATH', 8)
  refused(await workspace.sign(purpose, built(TANK, { kind: 'freeze' })), 'SHAPE', 7)
  signed(await workspace.sign(purpose, fuel(own, 560_000n)))
  refused(
    await workspace.sign({ ...purpose, for: stake(request, 'delegate') }, fuel(own, 560_000n)),
    'NOT_EXCLUSIVE',
    6,
  )
})

test('a tank stakes only as the operator ordered at each node', async () => {
  const order = randomUUID()
  const purpose = { kind: 'tank-stake', order }
  const freeze = (more: Partial<TronAction> = {}, path = TANK) =>
    built(path, { kind: 'freeze', ...more })
  refused(await workspace.sign(purpose, freeze()), 'ORDER_UNKNOWN', 15)
  const response = {
    workspace: workspace.name,
    network: 'TRX',
    action: 'stake',
    resource: 'ENERGY',
    amount: '100000000',
    order,
  }
  for (const answer of await cluster.everywhere('tank-stake', response))
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  assert.equal(
    (await cluster.operator(1, 'tank-stake', { ...response, amount: '1' })).body.error,
    'ENROLMENT_CONFLICT',
  )
  assert.equal(
    (await cluster.operator(1, 'tank-stake', { ...response, network: 'ETH', order: randomUUID() }))
      .body.error,
    'NETWORK_MISMATCH',
  )
  refused(await workspace.sign(purpose, freeze({ amount: 100_000_001n })), 'AMOUNT_MISMATCH', 7)
  refused(await workspace.sign(purpose, freeze({ resource: 'BANDWIDTH' })), 'RESOURCE_MISMATCH', 7)
  for (const kind of STEPS)
    if (kind !== 'freeze') refused(await workspace.sign(purpose, built(TANK, { kind })), 'SHAPE', 7)
  refused(await workspace.sign(purpose, freeze({}, [1, TRX.chain_index, 0])), 'FOREIGN_PATH', 8)
  refused(await (await cluster.workspace()).sign(purpose, freeze()), 'WORKSPACE_MISMATCH', 2)
  signed(await workspace.sign(purpose, freeze()))
  refused(await workspace.sign(purpose, freeze()), 'NOT_EXCLUSIVE', 6)
  await cluster.restartHere(1)
  refused(await workspace.sign(purpose, freeze()), 'NOT_EXCLUSIVE', 6)
})

test("a tank delegates energy to a transfer's source once, and can reclaim it afterwards", async () => {
  const { caller, path, own } = await fresh()
  const request = await transfer(caller, {
    asset: 'USDT_TRX',
    amount: '5',
    destination_address: FRIEND,
  })
  const lend = (step: 'delegate' | 'undelegate', what: unknown = pay(request)) => ({
    kind: 'lend',
    step,
    for: what,
  })
  const call = (kind: 'delegate' | 'undelegate', more: Partial<TronAction> = {}, from = TANK) =>
    built(from, { kind, receiver: own, ...more })
  refused(
    await workspace.sign(lend('delegate'), call('delegate', { receiver: THIEF })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(lend('delegate'), call('delegate', { receiver: FRIEND })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      lend('delegate'),
      call('delegate', { receiver: workspace.address(TRX, [path[0]!, TRX.chain_index, 1]) }),
    ),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(lend('delegate'), call('delegate', { resource: 'BANDWIDTH' })),
    'RESOURCE_MISMATCH',
    7,
  )
  refused(await workspace.sign(lend('delegate'), call('undelegate')), 'SHAPE', 7)
  refused(await workspace.sign(lend('delegate'), built(TANK, { kind: 'freeze' })), 'SHAPE', 7)
  refused(await workspace.sign(lend('delegate'), built(TANK, { kind: 'unfreeze' })), 'SHAPE', 7)
  refused(
    await workspace.sign(lend('delegate'), built(path, { kind: 'delegate' })),
    'FOREIGN_PATH',
    8,
  )
  signed(await workspace.sign(lend('delegate'), call('delegate')))
  refused(await workspace.sign(lend('delegate'), call('delegate')), 'NOT_EXCLUSIVE', 6)
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/void', { request, force: true })).body.voided, true)
  refused(await workspace.sign(lend('delegate'), call('delegate')), 'VOIDED', 14)
  refused(
    await workspace.sign(lend('undelegate'), call('undelegate', { receiver: FRIEND })),
    'DESTINATION_MISMATCH',
    7,
  )
  await cluster.everywhere('revoke', { api_key: caller.api_key })
  signed(await workspace.sign(lend('undelegate'), call('undelegate')))
  signed(await workspace.sign(lend('undelegate'), call('undelegate'), [2, 3]))
  const sweep = { kind: 'sweep', sub_account: path[0], asset: 'USDT_TRX', address_index: 3 }
  const deposit = workspace.address(TRX, [path[0]!, TRX.chain_index, 3])
  refused(
    await workspace.sign(lend('delegate', sweep), call('delegate')),
    'DESTINATION_MISMATCH',
    7,
  )
  signed(await workspace.sign(lend('delegate', sweep), call('delegate', { receiver: deposit })))
  signed(await workspace.sign(lend('undelegate', sweep), call('undelegate', { receiver: deposit })))
})
