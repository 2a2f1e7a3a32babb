import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { familyOf, utxo, type Asset, type Network, type UnsignedTransaction } from '@custody/chains'
import { Transaction } from 'bitcoinjs-lib'
import { encodeFunctionData, erc20Abi, serializeTransaction } from 'viem'
import {
  SignerCluster,
  pay,
  registry,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * The rules apply on every network: a legacy chain, Bitcoin Cash, and EVM networks other than
 * Ethereum.
 */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let next = 10

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.ok(answer.status >= 400 && answer.status < 500)
}
const KEY_ONE = Buffer.from(
  '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  'hex',
)
const net = (code: string) => registry.network(code) as Network

interface Built {
  code: string
  inputs: bigint[]
  amount: bigint
  change?: bigint
  to?: string
  sub?: number
  edit?: (transaction: Transaction) => void
}

/** Creates a payment from coins that a transaction outside the workspace sent to it. */
function payment({ code, inputs, amount, change, to, sub = 1, edit }: Built): UnsignedTransaction {
  const network = net(code)
  const path = [sub, network.chain_index, 0]
  const changePath = [sub, network.chain_index, 0x7fffffff]
  const source = new Transaction()
  source.version = 2
  source.addInput(randomBytes(32), 0, 0xffffffff)
  for (const value of inputs)
    source.addOutput(utxo.scriptOf(network, workspace.address(network, path)), value)
  const transaction = new Transaction()
  transaction.version = 2
  inputs.forEach((_, vout) =>
    transaction.addInput(
      source.getHash(),
      vout,
      network.utxo?.replaceable ? 0xfffffffd : 0xffffffff,
    ),
  )
  transaction.addOutput(utxo.scriptOf(network, to ?? sink(code)), amount)
  if (change !== undefined)
    transaction.addOutput(utxo.scriptOf(network, workspace.address(network, changePath)), change)
  edit?.(transaction)
  return {
    network: code,
    bytes: transaction.toHex(),
    inputs: inputs.map(() => ({ path, previous: source.toHex() })),
    ...(change === undefined ? {} : { change: { output: 1, path: changePath } }),
  }
}
const sink = (code: string) => familyOf(net(code)).address(net(code), KEY_ONE)
const request = (
  asset: string,
  amount: number | string,
  more: Record<string, unknown> = {},
  by = caller,
) => transfer(by, { asset, amount, destination_address: sink(asset), ...more })
const COIN = 100_000_000n

describe('UTXO chains without replacement of transactions', () => {
  for (const code of ['DOGE', 'DASH', 'BCH', 'LTC']) {
    const fee = code === 'DOGE' ? 400_000n : 1000n
    const honest = (more: Partial<Built> = {}) =>
      payment({
        code,
        inputs: [2n * COIN, 3n * COIN],
        amount: 4n * COIN,
        change: COIN - fee,
        ...more,
      })

    test(`${code}: signs an honest payment, with every signature over the right digest`, async () => {
      const unsigned = honest()
      const answer = await workspace.sign(pay(await request(code, 4)), unsigned)
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      const signatures = answer.body.signatures as {
        signature: string
        recovery_id?: number
        recoveryId?: number
      }[]
      assert.equal(signatures.length, 2)
      // Assembling the transaction verifies each signature against the digest that the platform
      // computes.
      const network = net(code)
      const parts = signatures.map((each) => ({
        signature: new Uint8Array(Buffer.from(each.signature, 'hex')),
        recoveryId: each.recovery_id ?? each.recoveryId ?? 0,
      }))
      const signed = familyOf(network).assemble(network, unsigned, parts, workspace.publicKeyAt)
      assert.equal(Transaction.fromHex(signed.raw).getId(), signed.hash)
    })

    test(`${code}: refuses another amount, destination, change or asset`, async () => {
      refused(
        await workspace.sign(
          pay(await request(code, 4)),
          honest({ amount: 4n * COIN - 1n, change: COIN - fee }),
        ),
        'AMOUNT_MISMATCH',
      )
      refused(
        await workspace.sign(
          pay(await request(code, 4)),
          honest({ to: workspace.address(net(code), [2, net(code).chain_index, 0]) }),
        ),
        'DESTINATION_MISMATCH',
      )
      const stolen = honest({
        edit: (transaction) => {
          transaction.outs[1]!.script = utxo.scriptOf(net(code), sink(code))
        },
      })
      refused(await workspace.sign(pay(await request(code, 4)), stolen), 'CHANGE_MISMATCH')
      refused(await workspace.sign(pay(await request(code, 4)), honest({ sub: 2 })), 'FOREIGN_PATH')
      const other = code === 'DOGE' ? 'DASH' : 'DOGE'
      refused(await workspace.sign(pay(await request(other, 4)), honest()), 'NETWORK_MISMATCH')
      refused(
        await workspace.sign(pay(await request(code, 4)), { ...honest(), network: other }),
        'NETWORK_MISMATCH',
      )
    })

    test(`${code}: refuses a previous transaction with false amounts, which a legacy signature does not cover`, async () => {
      const unsigned = honest()
      const lie = Transaction.fromHex(unsigned.inputs[0]!.previous!)
      lie.outs[0]!.value -= COIN / 2n
      refused(
        await workspace.sign(pay(await request(code, 4)), {
          ...unsigned,
          inputs: unsigned.inputs.map(({ path }) => ({ path, previous: lie.toHex() })),
        }),
        'PREVIOUS_TRANSACTION',
      )
      refused(
        await workspace.sign(pay(await request(code, 4)), {
          ...unsigned,
          inputs: unsigned.inputs.map(({ path }) => ({ path })),
        }),
        'PREVIOUS_TRANSACTION',
      )
    })

    test(`${code}: refuses other transaction types`, async () => {
      for (const edit of [
        (transaction: Transaction) => {
          transaction.version = 1
        },
        (transaction: Transaction) => {
          transaction.locktime = 500_000
        },
        (transaction: Transaction) => {
          transaction.ins[0]!.sequence = 5
        },
        (transaction: Transaction) => {
          transaction.addOutput(Buffer.from('6a0474657374', 'hex'), 0n)
        },
      ])
        refused(await workspace.sign(pay(await request(code, 4)), honest({ edit })), 'SHAPE')
    })

    test(`${code}: refuses fees above the node's cap or the caller's rate`, async () => {
      const cap = BigInt(net(code).fee_cap)
      refused(
        await workspace.sign(
          pay(await request(code, 4)),
          payment({ code, inputs: [4n * COIN + cap + 1n], amount: 4n * COIN }),
        ),
        'FEE_CAP',
      )
      refused(
        await workspace.sign(
          pay(await request(code, 4, { fee_rate: code === 'DOGE' ? 1000 : 2 })),
          honest({ change: COIN - 5n * fee }),
        ),
        'FEE_RATE',
      )
    })

    test(`${code}: refuses a second transaction with other coins for one payment`, async () => {
      const once = await request(code, 4, { sequence_id: `once-${code}` })
      assert.equal((await workspace.sign(pay(once), honest())).status, 200)
      refused(await workspace.sign(pay(once), honest()), 'NOT_EXCLUSIVE')
    })
  }

  test('BCH: accepts a destination in the old address format as the same address', async () => {
    const legacy = await transfer(caller, {
      asset: 'BCH',
      amount: 4,
      destination_address: 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r',
    })
    assert.equal(
      (
        await workspace.sign(
          pay(legacy),
          payment({ code: 'BCH', inputs: [5n * COIN], amount: 4n * COIN, change: COIN - 1000n }),
        )
      ).status,
      200,
    )
  })
})

describe('EVM networks', () => {
  const path = (sub: number) => [sub, 60, 0]
  interface Options {
    network?: string
    chainId?: number
    legacy?: boolean
    asset?: Asset
    amount?: bigint
    to?: string
    contract?: string
  }
  function evm(sub: number, o: Options = {}): UnsignedTransaction {
    const network = o.network ?? 'BSC'
    const asset = o.asset
    const body = {
      chainId: o.chainId ?? net(network).chain_id!,
      nonce: 0,
      gas: asset ? 65_000n : 21_000n,
      to: (asset ? (o.contract ?? asset.contract_address) : (o.to ?? SINK_ETH)) as `0x${string}`,
      value: asset ? 0n : (o.amount ?? 10n ** 18n),
      ...(asset
        ? {
            data: encodeFunctionData({
              abi: erc20Abi,
              functionName: 'transfer',
              args: [(o.to ?? SINK_ETH) as `0x${string}`, o.amount ?? 0n],
            }),
          }
        : {}),
    }
    const bytes = o.legacy
      ? serializeTransaction({ ...body, type: 'legacy', gasPrice: 2_000_000_000n })
      : serializeTransaction({
          ...body,
          type: 'eip1559',
          maxFeePerGas: 2_000_000_000n,
          maxPriorityFeePerGas: 1n,
        })
    return { network, bytes: bytes.slice(2), inputs: [{ path: path(sub) }] }
  }
  const fresh = async () => {
    const sub = next++
    return { sub, by: await workspace.caller(sub) }
  }
  const ask = (by: Caller, asset: string, amount: number | string = 1) =>
    transfer(by, { asset, amount, destination_address: SINK_ETH })

  test('refuses the chain id of every other network, because addresses are the same', async () => {
    const { sub, by } = await fresh()
    for (const network of ['BSC', 'OP_ETH', 'ONE']) {
      for (const { chain_id: chainId, code } of registry.networks) {
        if (chainId !== undefined && code !== network)
          refused(
            await workspace.sign(
              pay(await ask(by, network)),
              evm(sub, { network, chainId, legacy: network === 'ONE' }),
            ),
            'CHAIN_ID_MISMATCH',
          )
      }
      refused(
        await workspace.sign(pay(await ask(by, network)), {
          ...evm(sub, { network }),
          network: 'ETH',
        }),
        'NETWORK_MISMATCH',
      )
    }
  })

  test('a token is identified by its contract on its network, with its own decimals', async () => {
    const { sub, by } = await fresh()
    const asset = registry.asset('USDT_BSC') as Asset
    const ethereum = registry.asset('USDT_ETH') as Asset
    refused(
      await workspace.sign(
        pay(await ask(by, 'USDT_BSC', 5)),
        evm(sub, { asset, amount: 5_000_000n }),
      ),
      'AMOUNT_MISMATCH',
    )
    refused(
      await workspace.sign(
        pay(await ask(by, 'USDT_BSC', 5)),
        evm(sub, { asset, amount: 5n * 10n ** 18n, contract: ethereum.contract_address! }),
      ),
      'CONTRACT_MISMATCH',
    )
    refused(
      await workspace.sign(
        pay(await ask(by, 'USDT_BSC', 5)),
        evm(sub, { asset: registry.asset('USDC_BSC') as Asset, amount: 5n * 10n ** 18n }),
      ),
      'ASSET_MISMATCH',
    )
    assert.equal(
      (
        await workspace.sign(
          pay(await ask(by, 'USDT_BSC', 5)),
          evm(sub, { asset, amount: 5n * 10n ** 18n }),
        )
      ).status,
      200,
    )
  })

  test('ONE: accepts only transactions with a gas price', async () => {
    const { sub, by } = await fresh()
    refused(await workspace.sign(pay(await ask(by, 'ONE')), evm(sub, { network: 'ONE' })), 'SHAPE')
    assert.equal(
      (await workspace.sign(pay(await ask(by, 'ONE')), evm(sub, { network: 'ONE', legacy: true })))
        .status,
      200,
    )
  })

  test('gas funding includes the base-chain fee, and is limited to the stated amount', async () => {
    const { sub, by } = await fresh()
    const network = net('OP_ETH')
    const wanted = await ask(by, 'OP_ETH')
    const purpose = {
      kind: 'fuel',
      for: pay(wanted),
      gas: '21000',
      max_fee_per_gas: '2000000000',
      l1_fee: '5000000000000',
    }
    const most = (21_000n * 2_000_000_000n * 12n) / 10n + 5_000_000_000_000n
    const fuel = (amount: bigint) => ({
      ...evm(0, { network: 'OP_ETH', amount, to: workspace.address(network, path(sub)) }),
    })
    refused(await workspace.sign(purpose, fuel(most + 1n)), 'FUEL_TOO_LARGE')
    refused(
      await workspace.sign(
        { ...purpose, l1_fee: (BigInt(network.fee_cap) + 1n).toString() },
        fuel(most),
      ),
      'FUEL_TOO_LARGE',
    )
    assert.equal((await workspace.sign(purpose, fuel(most))).status, 200)
  })
})
