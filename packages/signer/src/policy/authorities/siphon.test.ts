import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Network } from '@custody/chains'
import {
  eth,
  ETH,
  SignerCluster,
  pay,
  registry,
  SINK_ETH,
  transfer,
  usdt,
  type Answer,
  type Caller,
  type Workspace,
} from '../../../testing/signer-cluster.ts'

/**
 * How much a hostile platform that cooperates with a caller can take from a gas tank, or waste of
 * deposits: rules 9 and 11 to 13.
 */
const CAPS = 4
const GAS = { gas: '65000', max_fee_per_gas: '2000000000' }
const COST = 65_000n * 2_000_000_000n
const CAP = BigInt(ETH.fee_cap)
const TANK = [0, ETH.chain_index, 0]
const ONE = 10n ** 18n
const BASE = registry.network('BASE') as Network
let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({
    engine: 'double',
    edit: (config) => {
      config.budget_fee_caps = CAPS
    },
  })
})
after(async () => {
  await cluster.stop()
})

const refused = (answer: Answer, code: string): void => {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
}
const signed = (answer: Answer): void => {
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
}

interface DepositAddress {
  workspace: Workspace
  caller: Caller
  omnibus: string
  deposit: (index: number) => { path: number[]; address: string; sweep: (asset: string) => object }
}
async function place(workspace: Workspace, sub: number): Promise<DepositAddress> {
  const caller = await workspace.caller(sub)
  return {
    workspace,
    caller,
    omnibus: workspace.address(ETH, [sub, ETH.chain_index, 0]),
    deposit: (index) => {
      const path = [sub, ETH.chain_index, index]
      return {
        path,
        address: workspace.address(ETH, path),
        sweep: (asset) => ({ kind: 'sweep', sub_account: sub, asset, address_index: index }),
      }
    },
  }
}
const fuel = (of: unknown, more: object = {}) => ({ kind: 'fuel', for: of, ...GAS, ...more })

describe('draining a gas tank through a deposit address', () => {
  test('attack: refuses l1_fee on a chain without a base chain, or above a tenth of the cap', async () => {
    const { workspace, deposit } = await place(await cluster.workspace(), 1)
    const { address, sweep } = deposit(1)
    refused(
      await workspace.sign(
        fuel(sweep('USDT_ETH'), { l1_fee: '1' }),
        eth(TANK, { value: 1n, to: address }),
      ),
      'FUEL_TOO_LARGE',
    )
    const onBase = (l1: bigint, value: bigint) =>
      workspace.sign(fuel(sweep('USDT_BASE'), { l1_fee: l1.toString() }), {
        ...eth(TANK, { value, to: address, chainId: BASE.chain_id! }),
        network: 'BASE',
      })
    refused(await onBase(CAP / 10n + 1n, 1n), 'FUEL_TOO_LARGE')
    signed(await onBase(CAP / 10n, (COST * 12n) / 10n + CAP / 10n))
  })

  test('attack: refuses gas funding for a sweep of the native coin, which pays its own fee', async () => {
    const { workspace, deposit } = await place(await cluster.workspace(), 1)
    refused(
      await workspace.sign(
        fuel(deposit(1).sweep('ETH')),
        eth(TANK, { value: 1n, to: deposit(1).address }),
      ),
      'FUEL_WITHOUT_INTENT',
    )
  })

  test('attack: refuses gas funding and sweeps of sub-accounts without a name', async () => {
    const { workspace, deposit } = await place(await cluster.workspace(), 1)
    const nobody = { kind: 'sweep', sub_account: 2, asset: 'USDT_ETH', address_index: 1 }
    refused(
      await workspace.sign(
        fuel(nobody),
        eth(TANK, { value: 1n, to: workspace.address(ETH, [2, ETH.chain_index, 1]) }),
      ),
      'NOT_ENROLLED',
    )
    refused(
      await workspace.sign(nobody, usdt([2, ETH.chain_index, 1], deposit(0).address, 1n)),
      'NOT_ENROLLED',
    )
  })

  test('attack: unused gas at an address counts for the next funding, whichever pair signed it', async () => {
    const { workspace, deposit, omnibus } = await place(await cluster.workspace(), 1)
    const { address, path, sweep } = deposit(1)
    const most = (COST * 12n) / 10n
    const give = (value: bigint, nonce: number, pair: readonly [number, number]) =>
      workspace.sign(fuel(sweep('USDT_ETH')), eth(TANK, { value, to: address, nonce }), pair)
    signed(await give(most, 0, [1, 2]))
    refused(await give(1n, 1, [1, 2]), 'FUEL_TOO_LARGE')
    // With the nonce of the first, only one of the two can be mined: a replacement with more gas or
    // a higher price.
    signed(
      await workspace.sign(
        fuel(sweep('USDT_ETH')),
        eth(TANK, {
          value: most,
          to: address,
          nonce: 0,
          gas: 78_000n,
          maxFeePerGas: 3_000_000_000n,
        }),
        [1, 2],
      ),
    )
    // Node 3 has no record of it and leads the session.
    refused(await give(1n, 1, [3, 1]), 'FUEL_TOO_LARGE')
    // A sweep may have used its fee: that amount can be funded again, and the fifth beyond it stays
    // counted.
    signed(
      await workspace.sign(
        sweep('USDT_ETH'),
        usdt(path, omnibus, 5_000_000n, { nonce: 0 }),
        [3, 2],
      ),
    )
    refused(await give(COST + 1n, 1, [1, 2]), 'FUEL_TOO_LARGE')
    signed(await give(COST, 1, [1, 2]))
    // The remainder belongs to no customer and is not swept.
    refused(
      await workspace.sign(sweep('ETH'), eth(path, { value: most, to: omnibus, nonce: 1 }), [1, 2]),
      'SWEEP_MISMATCH',
    )
    signed(
      await workspace.sign(
        sweep('ETH'),
        eth(path, { value: most + 1n, to: omnibus, nonce: 1 }),
        [1, 2],
      ),
    )
  })

  test('attack: one colluding sub-account can take only its daily share of the gas tank', async () => {
    const workspace = await cluster.workspace()
    const [colluder, honest] = [await place(workspace, 1), await place(workspace, 2)]
    let nonce = 0
    let total = 0n
    const price = (CAP / 65_000n).toString()
    const most = (BigInt(price) * 65_000n * 12n) / 10n
    const draw = (from: DepositAddress, index: number) =>
      workspace.sign(
        fuel(from.deposit(index).sweep('USDT_ETH'), { max_fee_per_gas: price }),
        eth(TANK, { value: most, to: from.deposit(index).address, nonce }),
        [1, 2],
      )
    for (let index = 1; index < 8; index++) {
      const answer = await draw(colluder, index)
      if (answer.status !== 200) {
        refused(answer, 'BUDGET')
        break
      }
      nonce++
      total += most
    }
    assert.ok(total <= (BigInt(CAPS) * CAP) / 4n, `${total} drawn`)
    const small = honest.deposit(1)
    signed(
      await workspace.sign(
        fuel(small.sweep('USDT_ETH')),
        eth(TANK, { value: COST, to: small.address, nonce: nonce++ }),
        [1, 2],
      ),
    )
    const request = await transfer(honest.caller, {
      asset: 'USDT_ETH',
      amount: 1,
      destination_address: SINK_ETH,
    })
    signed(
      await workspace.sign(
        fuel(pay(request)),
        eth(TANK, { value: COST, to: honest.omnibus, nonce: nonce++ }),
        [1, 2],
      ),
    )
  })

  test('attack: one caller’s high fee_rate does not use up the budget of another sub-account', async () => {
    const workspace = await cluster.workspace()
    const [loud, quiet] = [await place(workspace, 1), await place(workspace, 2)]
    let nonce = 0
    const price = (CAP / 65_000n).toString()
    const value = (BigInt(price) * 65_000n * 12n) / 10n
    let last: Answer
    do {
      const request = await transfer(loud.caller, {
        asset: 'USDT_ETH',
        amount: 1,
        destination_address: SINK_ETH,
      })
      last = await workspace.sign(
        fuel(pay(request), { max_fee_per_gas: price }),
        eth(TANK, { value, to: loud.omnibus, nonce }),
        [1, 2],
      )
    } while (last.status === 200 && nonce++ < 20)
    refused(last, 'BUDGET')
    const request = await transfer(quiet.caller, {
      asset: 'USDT_ETH',
      amount: 1,
      destination_address: SINK_ETH,
    })
    signed(
      await workspace.sign(
        fuel(pay(request)),
        eth(TANK, { value: COST, to: quiet.omnibus, nonce }),
        [1, 2],
      ),
    )
  })
})

describe('burning deposits through the fees of their sweeps', () => {
  test('attack: refuses sweeps of 1 wei', async () => {
    const { workspace, deposit, omnibus } = await place(await cluster.workspace(), 1)
    const { path, sweep } = deposit(1)
    const maxFeePerGas = CAP / 21_000n
    const fee = 21_000n * maxFeePerGas
    refused(
      await workspace.sign(sweep('ETH'), eth(path, { value: 1n, to: omnibus, maxFeePerGas })),
      'SWEEP_MISMATCH',
    )
    refused(
      await workspace.sign(sweep('ETH'), eth(path, { value: fee - 1n, to: omnibus, maxFeePerGas })),
      'SWEEP_MISMATCH',
    )
    // Only the fee above a twentieth of the amount counts. One such sweep leaves a twentieth of the
    // share of one cap.
    signed(
      await workspace.sign(
        sweep('ETH'),
        eth(path, { value: fee, to: omnibus, maxFeePerGas, nonce: 0 }),
      ),
    )
    refused(
      await workspace.sign(
        sweep('ETH'),
        eth(path, { value: fee, to: omnibus, maxFeePerGas, nonce: 1 }),
      ),
      'BUDGET',
    )
    // The sweep of a large deposit uses no budget.
    for (let nonce = 1; nonce < 4; nonce++)
      signed(
        await workspace.sign(
          sweep('ETH'),
          eth(path, { value: 20n * fee, to: omnibus, maxFeePerGas, nonce }),
        ),
      )
  })
})

describe('burning funds through the network fees of forwards', () => {
  const ruleOf = async (caller: Caller, body: Record<string, unknown>) => {
    const { signRequest } = await import('@custody/request-auth')
    const { callerKey } = await import('../../../testing/signer-cluster.ts')
    const text = JSON.stringify({
      destination_address: SINK_ETH,
      expires_at: new Date(Date.now() + 86_400_000).toISOString(),
      ...body,
    })
    const request = await signRequest({
      apiKey: caller.api_key,
      privateKey: callerKey,
      method: 'POST',
      uri: '/dac/v1/auto-forwarding',
      body: text,
    })
    for (const node of [1, 2, 3]) signed(await cluster.post(node, '/receipt', { request }))
    return request
  }
  const uuid = (n: number) => `00000000-0000-4000-8000-${n.toString().padStart(12, '0')}`

  test('attack: fees and amounts of 20 forwards together stay within the cap of the rule', async () => {
    const { workspace, caller } = await place(await cluster.workspace(), 1)
    const rule = await ruleOf(caller, { asset: 'ETH', min_amount: '0.001', daily_cap: '0.2' })
    const maxFeePerGas = CAP / 21_000n
    let left = 0n
    for (let nonce = 0; nonce < 20; nonce++) {
      const answer = await workspace.sign(
        { kind: 'forward', id: uuid(nonce), rule },
        eth([1, ETH.chain_index, 0], { value: ONE / 1000n, maxFeePerGas, nonce }),
        [1, 2],
      )
      if (answer.status !== 200) {
        refused(answer, 'FORWARD_CAP')
        break
      }
      left += ONE / 1000n + 21_000n * maxFeePerGas
    }
    assert.ok(left <= ONE / 5n, `${left} left the wallet`)
    assert.ok(left > 0n)
  })

  test('attack: token forwards, whose fees the cap cannot count, are limited by the fee budget', async () => {
    const { workspace, caller } = await place(await cluster.workspace(), 1)
    const rule = await ruleOf(caller, {
      asset: 'USDT_ETH',
      min_amount: '0.001',
      daily_cap: '1000000',
    })
    const maxFeePerGas = CAP / 65_000n
    let burnt = 0n
    let last: Answer | null = null
    for (let nonce = 0; nonce < 20 && (last === null || last.status === 200); nonce++) {
      last = await workspace.sign(
        { kind: 'forward', id: uuid(nonce), rule },
        usdt([1, ETH.chain_index, 0], SINK_ETH, 1000n, { maxFeePerGas, nonce }),
        [1, 2],
      )
      if (last.status === 200) burnt += 65_000n * maxFeePerGas
    }
    refused(last as Answer, 'BUDGET')
    assert.ok(burnt <= BigInt(CAPS) * CAP, `${burnt} burnt`)
  })
})
