// LTC, DASH, DOGE and BCH: published addresses, and transactions and signatures verified with other
// libraries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as libauth from '@bitauth/libauth'
import {
  Address,
  NETWORK,
  OutScript,
  RawTx,
  Transaction as ScureTransaction,
} from '@scure/btc-signer'
import { sha256 } from '@noble/hashes/sha2.js'
import { Transaction } from 'bitcoinjs-lib'
import * as fc from '../../../../testing/property.ts'
import {
  ChainError,
  familyOf,
  utxo,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from '../index.ts'
import {
  addressOf,
  fund,
  highS,
  local,
  mainnet,
  previousOf,
  publicKeyAt,
  sign,
} from '../../testing/support.ts'

const CODES = ['LTC', 'DASH', 'DOGE', 'BCH'] as const
const net = (code: string): Network => local.network(code) as Network
const main = (code: string): Network => mainnet.network(code) as Network
const assetsOf = (code: string): Asset[] => local.assetsOf(code)
const check = (network: Network, address: string) => familyOf(network).validate(network, address)
const canonical = (network: Network, address: string) => {
  const answer = check(network, address)
  return answer.valid ? answer.address : answer.reason
}
/** The generator point G. */
const KEY_ONE = Buffer.from(
  '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  'hex',
)

// https://github.com/bitcoincashorg/bitcoincash.org/blob/master/spec/cashaddr.md
const LEGACY_AND_CASH = [
  ['1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu', 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
  ['1KXrWXciRDZUpQwQmuM1DbwsKDLYAYsVLR', 'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy'],
  ['16w1D5WRVKJuZUsSRzdLp9w3YGcgoxDXb', 'bitcoincash:qqq3728yw0y47sqn6l2na30mcw6zm78dzqre909m2r'],
  ['3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC', 'bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq'],
  ['3LDsS579y7sruadqu11beEJoTjdFiFCdX4', 'bitcoincash:pr95sy3j9xwd2ap32xkykttr4cvcu7as4yc93ky28e'],
  ['31nwvkZwyPdgzjBJZXfDmSWsC4ZLKpYyUw', 'bitcoincash:pqq3728yw0y47sqn6l2na30mcw6zm78dzq5ucqzc37'],
] as const

test('CashAddr: accepts the specification’s examples, with and without prefix, and in capitals', () => {
  for (const [legacy, cash] of LEGACY_AND_CASH) {
    const body = cash.slice('bitcoincash:'.length)
    for (const spelling of [legacy, cash, body, cash.toUpperCase(), body.toUpperCase()])
      assert.equal(canonical(main('BCH'), spelling), cash, spelling)
  }
})

test('CashAddr: refuses mixed case, another prefix, a longer hash and a changed letter', () => {
  const cash = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'
  const wrong = [
    cash.replace('qpm2', 'qPm2'),
    cash.replace('bitcoincash', 'bchtest'),
    `bchreg:${cash.slice(12)}`,
    `${cash}q`,
    cash.replace('gdx6a', 'gdx6q'),
    // Vectors of the specification for 24 and 32 bytes: no standard output script pays to them.
    'bitcoincash:q9adhakpwzztepkpwp5z0dq62m6u5v5xtyj7j3h2ws4mr9g0',
    'bitcoincash:qvch8mmxy0rtfrlarg7ucrxxfzds5pamg73h7370aa87d80gyhqxq5nlegake',
    'bchtest:pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'bitcoincash:',
    ':',
    '',
  ]
  for (const address of wrong) assert.equal(check(main('BCH'), address).valid, false, address)
  assert.equal(
    canonical(main('BCH'), 'bitcoincash:qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2'),
    'bitcoincash:qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2',
  )
  assert.throws(() => utxo.scriptOf(net('BCH'), cash), ChainError)
})

test('derives the addresses of a known key', () => {
  const expected = {
    LTC: 'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9',
    DASH: 'XmN7PQYWKn5MJFna5fRYgP6mxT2F7xpekE',
    DOGE: 'DFpN6QqFfUm3gKNaxN6tNcab1FArL9cZLE',
    BCH: 'bitcoincash:qp63uahgrxged4z5jswyt5dn5v3lzsem6cy4spdc2h',
  }
  for (const code of CODES)
    assert.equal(familyOf(main(code)).address(main(code), KEY_ONE), expected[code])
  const regtest = { LTC: /^rltc1q/, DASH: /^y/, DOGE: /^[mn]/, BCH: /^bchreg:q/ }
  for (const code of CODES)
    assert.match(familyOf(net(code)).address(net(code), KEY_ONE), regtest[code])
})

test('each chain accepts only its own published addresses', () => {
  const samples: Record<string, string[]> = {
    LTC: [
      'LVg2kJoFNg45Nbpy53h7Fe1wKyeXVRhMH9',
      'LaMT348PWRnrqeeWArpwQPbuanpXDZGEUz',
      'MQMcJhpWHYVeQArcZR3sBgyPZxxRtnH441',
      'ltc1qg42tkwuuxefutzxezdkdel39gfstuap288mfea',
    ],
    DASH: ['XmN7PQYWKn5MJFna5fRYgP6mxT2F7xpekE'],
    DOGE: ['DBXu2kgc3xtvCUWFcxFE3r9hEYgmuaaCyD', 'DFpN6QqFfUm3gKNaxN6tNcab1FArL9cZLE'],
  }
  for (const [code, addresses] of Object.entries(samples)) {
    for (const address of addresses) {
      assert.equal(canonical(main(code), address), address)
      for (const other of ['BTC', ...CODES])
        if (other !== code)
          assert.equal(check(main(other), address).valid, false, `${address} on ${other}`)
    }
  }
})

test('encodes random hashes to the same addresses as @scure/btc-signer and libauth', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 20, maxLength: 20 }),
      fc.constantFrom('pkh', 'sh'),
      (hash, type) => {
        const script = OutScript.encode({ type, hash })
        for (const network of CODES.flatMap((code) => [net(code), main(code)])) {
          const {
            p2pkh_version: pubKeyHash,
            p2sh_version: scriptHash,
            cashaddr_prefix: prefix,
          } = network.utxo!
          const expected =
            prefix === undefined
              ? Address({ ...NETWORK, pubKeyHash, scriptHash }).encode({ type, hash })
              : (
                  libauth.lockingBytecodeToCashAddress({
                    bytecode: script,
                    prefix: prefix as 'bchreg',
                  }) as { address: string }
                ).address
          assert.equal(utxo.addressOf(network, script), expected)
          assert.deepEqual(Buffer.from(utxo.scriptOf(network, expected)), Buffer.from(script))
          assert.equal(canonical(network, expected), expected)
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('accepts any text as a valid address or refuses it with a reason', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.stringMatching(/^(bchreg:)?[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{30,60}$/),
      ),
      (text) => {
        for (const code of CODES) {
          const answer = check(net(code), text)
          if (!answer.valid) assert.ok(answer.reason.length > 5)
        }
      },
    ),
    { numRuns: 500 },
  )
})

/** Returns a signed payment from two coins of the wallet, with change. */
function payment(code: string, amount = 150_000_000n) {
  const network = net(code)
  const path = [1, network.chain_index, 0]
  const changePath = [1, network.chain_index, 0x7fffffff]
  const funds = fund(network, [
    { path, value: 100_000_000n },
    { path: [1, network.chain_index, 3], value: 120_000_000n },
  ])
  const to = familyOf(network).address(network, KEY_ONE)
  const feeRate = BigInt(network.utxo!.min_fee_rate) * 1000n
  const changeAddress = addressOf(network, changePath)
  const selection = utxo.selectCoins(network, {
    utxos: funds.utxos,
    to,
    amount,
    changeAddress,
    feeRate,
  })
  const unsigned = utxo.buildTransfer(network, {
    selection,
    to,
    amount,
    changeAddress,
    changePath,
    previous: previousOf(funds),
  })
  const signatures = sign(familyOf(network).signing(network, unsigned, publicKeyAt))
  const coins = selection.utxos.map((coin) => ({
    value: coin.value,
    script: utxo.scriptOf(network, coin.address),
  }))
  return {
    network,
    unsigned,
    signatures,
    coins,
    selection,
    signed: familyOf(network).assemble(network, unsigned, signatures, publicKeyAt),
    decoded: familyOf(network).decode(network, unsigned, assetsOf(code), publicKeyAt),
  }
}

test('decoding returns the input values, and the size estimate is never too low', () => {
  for (const code of CODES) {
    const { network, unsigned, decoded, selection, signed } = payment(code)
    assert.equal(decoded.asset, code)
    assert.deepEqual(decoded.payments, [
      { address: familyOf(network).address(network, KEY_ONE), amount: 150_000_000n, tag: null },
    ])
    assert.equal(decoded.fee_max, selection.fee)
    assert.equal(decoded.change?.amount, 70_000_000n - selection.fee)
    const real = Transaction.fromHex(signed.raw)
    assert.ok(
      real.virtualSize() <= decoded.vsize! &&
        real.virtualSize() >= decoded.vsize! - 3 * real.ins.length,
      `${code} ${real.virtualSize()} ${decoded.vsize}`,
    )
    assert.equal(real.getId(), signed.hash)
    assert.ok(real.ins.every((input) => input.sequence === 0xffffffff))
    assert.equal(unsigned.inputs.length, 2)
  }
})

const machine = libauth.createVirtualMachineBCH(true)
function verdict(raw: string, coins: { value: bigint; script: Uint8Array }[]): string | true {
  const transaction = libauth.decodeTransactionUnsafe(Uint8Array.from(Buffer.from(raw, 'hex')))
  return machine.verify({
    transaction,
    sourceOutputs: coins.map(({ value, script }) => ({
      valueSatoshis: value,
      lockingBytecode: Uint8Array.from(script),
    })),
  })
}

test('BCH: libauth accepts a payment and refuses a changed amount, signature or sighash byte', () => {
  const { signed, coins } = payment('BCH')
  assert.equal(verdict(signed.raw, coins), true)
  assert.notEqual(
    verdict(signed.raw, [{ ...coins[0]!, value: coins[0]!.value - 1n }, coins[1]!]),
    true,
    'the digest covers the amounts',
  )
  const signature = /41(?=21[0-9a-f]{66}ffffffff)/
  assert.match(signed.raw, signature)
  for (const byte of ['01', '42', 'c1'])
    assert.notEqual(verdict(signed.raw.replace(signature, byte), coins), true, byte)
})

test('BCH: the signing digests equal those of libauth', () => {
  const { network, unsigned, coins } = payment('BCH')
  const transaction = libauth.decodeTransactionUnsafe(
    Uint8Array.from(Buffer.from(unsigned.bytes, 'hex')),
  )
  familyOf(network)
    .signing(network, unsigned, publicKeyAt)
    .forEach((item, inputIndex) => {
      const serialization = libauth.generateSigningSerializationBCH(
        {
          inputIndex,
          transaction,
          sourceOutputs: coins.map(({ value, script }) => ({
            valueSatoshis: value,
            lockingBytecode: Uint8Array.from(script),
          })),
        },
        {
          coveredBytecode: Uint8Array.from(coins[inputIndex]!.script),
          signingSerializationType: Uint8Array.of(0x41),
        },
      )
      assert.deepEqual(Buffer.from(item.message), Buffer.from(libauth.hash256(serialization)))
    })
})

test('DASH, DOGE: digests equal those of @scure/btc-signer; LTC: digests follow BIP143', () => {
  for (const code of ['DASH', 'DOGE', 'LTC']) {
    const { network, unsigned, coins } = payment(code)
    const judge = new ScureTransaction({ version: 2, allowUnknownOutputs: true })
    const parts = RawTx.decode(Buffer.from(unsigned.bytes, 'hex'))
    parts.inputs.forEach((input, at) =>
      judge.addInput({
        txid: input.txid,
        index: input.index,
        sequence: input.sequence,
        witnessUtxo: { script: coins[at]!.script, amount: coins[at]!.value },
      }),
    )
    for (const output of parts.outputs)
      judge.addOutput({ script: output.script, amount: output.amount })
    familyOf(network)
      .signing(network, unsigned, publicKeyAt)
      .forEach((item, at) => {
        const code = Buffer.concat([
          Buffer.from('76a914', 'hex'),
          coins[at]!.script.length === 22
            ? coins[at]!.script.slice(2)
            : coins[at]!.script.slice(3, 23),
          Buffer.from('88ac', 'hex'),
        ])
        const inner = judge as unknown as {
          preimageLegacy(index: number, script: Uint8Array, type: number): Uint8Array
          preimageWitnessV0(
            index: number,
            script: Uint8Array,
            type: number,
            amount: bigint,
          ): Uint8Array
        }
        const expected =
          network.utxo!.script === 'p2pkh'
            ? inner.preimageLegacy(at, code, 1)
            : inner.preimageWitnessV0(at, code, 1, coins[at]!.value)
        assert.deepEqual(Buffer.from(item.message), Buffer.from(expected), network.code)
      })
  }
})

test('refuses transaction types that a chain does not support', () => {
  for (const code of CODES) {
    const { network, unsigned } = payment(code)
    const decode = (
      edit: (transaction: Transaction) => void,
      more: Partial<UnsignedTransaction> = {},
    ) => {
      const transaction = Transaction.fromHex(unsigned.bytes)
      edit(transaction)
      return familyOf(network).decode(
        network,
        { ...unsigned, bytes: transaction.toHex(), ...more },
        assetsOf(code),
        publicKeyAt,
      )
    }
    const refused = (
      expected: string,
      edit: (transaction: Transaction) => void,
      more?: Partial<UnsignedTransaction>,
    ) => {
      assert.throws(
        () => decode(edit, more),
        (error: ChainError) => error.code === expected,
        `${code} ${expected}`,
      )
    }
    // Records of LTC contain transactions that signal replacement, which has no effect on them.
    for (const sequence of [0xfffffffd, 0xfffffffe, 0xffffffff])
      decode((transaction) => {
        transaction.ins[0]!.sequence = sequence
      })
    for (const sequence of [0xfffffffc, 0])
      refused('SHAPE', (transaction) => {
        transaction.ins[0]!.sequence = sequence
      })
    refused('SHAPE', (transaction) => {
      transaction.version = 1
    })
    refused('SHAPE', (transaction) => {
      transaction.locktime = 1
    })
    refused('SHAPE', (transaction) => {
      transaction.outs[0]!.script = Buffer.from('6a0548656c6c6f', 'hex')
    })
    if (code !== 'LTC')
      refused('SHAPE', (transaction) => {
        transaction.outs[0]!.script = Buffer.from(
          '0014751e76e8199196d454941c45d1b3a323f1433bd6',
          'hex',
        )
      })
    // Legacy signatures do not cover amounts: a previous transaction with false amounts has another
    // id.
    const lie = Transaction.fromHex(unsigned.inputs[0]!.previous!)
    lie.outs[0]!.value -= 1_000_000n
    refused('PREVIOUS_TRANSACTION', () => {}, {
      inputs: unsigned.inputs.map((input) => ({ ...input, previous: lie.toHex() })),
    })
    refused('PREVIOUS_TRANSACTION', () => {}, {
      inputs: unsigned.inputs.map(({ path }) => ({ path })),
    })
  }
})

test('refuses signatures that do not verify or are malleable', () => {
  for (const code of CODES) {
    const { network, unsigned, signatures } = payment(code)
    const refuse = (changed: typeof signatures) =>
      assert.throws(
        () => familyOf(network).assemble(network, unsigned, changed, publicKeyAt),
        (error: ChainError) => error.code === 'SIGNATURE',
      )
    refuse([highS(signatures[0]!), signatures[1]!])
    refuse([signatures[1]!, signatures[0]!])
    refuse([signatures[0]!])
  }
})

test('refuses a signature for one chain on a related chain', () => {
  // The same keys, coins and outputs: only the FORKID of Bitcoin Cash prevents a replay on a chain
  // without it.
  const { signatures, unsigned } = payment('BCH')
  const network: Network = { ...net('BCH'), utxo: { ...net('DOGE').utxo!, p2pkh_version: 111 } }
  const elsewhere = { ...unsigned, network: network.code }
  assert.throws(
    () => familyOf(network).assemble(network, elsewhere, signatures, publicKeyAt),
    (error: ChainError) => error.code === 'SIGNATURE',
  )
})

test('enforces each chain’s dust limit, exact to the smallest unit', () => {
  const limits: [string, bigint][] = [
    ['LTC', 2940n],
    ['DASH', 546n],
    ['DOGE', 1_000_000n],
    ['BCH', 546n],
  ]
  for (const [code, limit] of limits) {
    payment(code, limit)
    assert.throws(
      () => payment(code, limit - 1n),
      (error: ChainError) => error.code === 'DUST',
      code,
    )
  }
})

test('LTC: spends a coin that was paid from the extension blocks', () => {
  const { network, unsigned } = payment('LTC')
  const previous = unsigned.inputs[0]!.previous!
  const extended = `${previous.slice(0, 8)}0008${previous.slice(8, -8)}00${previous.slice(-8)}`
  const inputs = unsigned.inputs.map(({ path }) => ({ path, previous: extended }))
  assert.equal(
    familyOf(network).decode(network, { ...unsigned, inputs }, assetsOf('LTC'), publicKeyAt)
      .payments.length,
    1,
  )
  const more = unsigned.inputs.map(({ path }) => ({
    path,
    previous: extended.replace('0008', '0009'),
  }))
  assert.throws(
    () =>
      familyOf(network).decode(
        network,
        { ...unsigned, inputs: more },
        assetsOf('LTC'),
        publicKeyAt,
      ),
    ChainError,
  )
})

test('LTC: recomputes the id of a mainnet payment out of the extension blocks', () => {
  const network = main('LTC')
  const previous =
    '02000000000801af76b95c6766ffd4db42bcb022e682a2ac3d422e6ca78ec98da312bc490bffd70000000000ffffffff024080c63afd20000022582069fe96e528a9fed69c1e620d4305fc8a0f12f6aa355cfbb0dd160261eb94df1b035fc33900000000160014d40f690970c91a645ff3af4d8676ea1ef1b15d940000000000'
  const txid = 'e64e56959c87e8689dca558bc1bf0d5b4757b7dc0ee29c64814240b406cade34'
  const transaction = new Transaction()
  transaction.version = 2
  transaction.addInput(Buffer.from(txid, 'hex').reverse(), 1, 0xfffffffd)
  transaction.addOutput(
    utxo.scriptOf(network, 'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9'),
    100_000n,
  )
  const decode = (hex: string) =>
    familyOf(network).decode(
      network,
      { network: 'LTC', bytes: transaction.toHex(), inputs: [{ path: [1, 2, 0], previous: hex }] },
      mainnet.assetsOf('LTC'),
      publicKeyAt,
    )
  // The output belongs to another key. This error can appear only for a transaction whose id is
  // correct.
  assert.throws(() => decode(previous), /does not belong to the key/)
  assert.throws(() => decode(previous.replace('5fc339', '5fc439')), /has another id/)
})

/**
 * Returns a special transaction of Dash (DIP-2) that pays one of our outputs: version 3 with a type
 * in the upper half, and a payload after the lock time.
 */
function special(
  type: number,
  o: { inputs: string; payload: number; value?: bigint; version?: number },
): { txid: string; hex: string; utxos: utxo.Utxo[] } {
  const network = net('DASH')
  const path = [1, network.chain_index, 0]
  const address = addressOf(network, path)
  const script = Buffer.from(utxo.scriptOf(network, address))
  const value = o.value ?? 100_000_000n
  const amount = Buffer.alloc(8)
  amount.writeBigUInt64LE(value)
  const head = Buffer.alloc(4)
  head.writeUInt16LE(o.version ?? 3, 0)
  head.writeUInt16LE(type, 2)
  const length =
    o.payload < 0xfd ? Buffer.of(o.payload) : Buffer.of(0xfd, o.payload & 0xff, o.payload >> 8)
  const hex = Buffer.concat([
    head,
    Buffer.from(o.inputs, 'hex'),
    Buffer.of(1),
    amount,
    Buffer.of(script.length),
    script,
    Buffer.alloc(4),
    length,
    Buffer.alloc(o.payload, 7),
  ]).toString('hex')
  const txid = Buffer.from(sha256(sha256(Buffer.from(hex, 'hex'))))
    .reverse()
    .toString('hex')
  return { txid, hex, utxos: [{ txid, vout: 0, value, path, address }] }
}
const COINBASE_INPUT = `01${'00'.repeat(32)}ffffffff0403a1b2c3ffffffff`
const ORDINARY_INPUT = `01${'ab'.repeat(32)}00000000026a00ffffffff`

test('DASH: spends outputs of special transactions, whose ids cover their payloads', () => {
  const network = net('DASH')
  const family = familyOf(network)
  const [to, changePath] = [
    addressOf(network, [1, network.chain_index, 9]),
    [1, network.chain_index, 0x7fffffff],
  ]
  const changeAddress = addressOf(network, changePath)
  const spend = ({ txid, hex, utxos }: ReturnType<typeof special>): UnsignedTransaction =>
    utxo.buildTransfer(network, {
      selection: utxo.selectCoins(network, {
        utxos,
        to,
        amount: 1_000_000n,
        changeAddress,
        feeRate: 1000n,
      }),
      to,
      amount: 1_000_000n,
      changeAddress,
      changePath,
      previous: new Map([[txid, hex]]),
    })
  const kinds: [type: number, inputs: string, payload: number][] = [
    [1, ORDINARY_INPUT, 300],
    [2, ORDINARY_INPUT, 180],
    [3, ORDINARY_INPUT, 220],
    [4, ORDINARY_INPUT, 160],
    [5, COINBASE_INPUT, 70],
    [6, '00', 250],
    [8, ORDINARY_INPUT, 36],
    [9, '00', 190],
  ]
  for (const [type, inputs, payload] of kinds) {
    const parent = special(type, { inputs, payload })
    const unsigned = spend(parent)
    assert.equal(unsigned.inputs[0]?.previous, parent.hex, 'the node sees all that the id covers')
    const decoded = family.decode(network, unsigned, assetsOf('DASH'), publicKeyAt)
    assert.deepEqual(
      decoded.payments,
      [{ address: to, amount: 1_000_000n, tag: null }],
      `type ${type}`,
    )
    assert.equal(
      decoded.change!.amount + decoded.payments[0]!.amount + decoded.fee_max,
      100_000_000n,
    )
    const signed = family.assemble(
      network,
      unsigned,
      sign(family.signing(network, unsigned, publicKeyAt)),
      publicKeyAt,
    )
    assert.equal(Transaction.fromHex(signed.raw).ins.length, 1)
    // No part may be changed: neither the payload, nor its length, nor the type.
    for (const at of [4, parent.hex.length - 2]) {
      const digit = parent.hex[at] === '0' ? '1' : '0'
      const hex = `${parent.hex.slice(0, at)}${digit}${parent.hex.slice(at + 1)}`
      const forged = {
        ...unsigned,
        inputs: unsigned.inputs.map((each) => ({ ...each, previous: hex })),
      }
      assert.throws(
        () => family.decode(network, forged, assetsOf('DASH'), publicKeyAt),
        ChainError,
        `type ${type}, digit ${at}`,
      )
    }
    for (const hex of [`${parent.hex}00`, parent.hex.slice(0, -2)]) {
      const forged = {
        ...unsigned,
        inputs: unsigned.inputs.map((each) => ({ ...each, previous: hex })),
      }
      assert.throws(
        () => family.decode(network, forged, assetsOf('DASH'), publicKeyAt),
        /is not a Bitcoin transaction/,
      )
    }
  }
  // Below version 3 the upper half is not a type, and no other network has types.
  assert.equal(
    utxo.unspendable(
      network,
      special(9, { inputs: ORDINARY_INPUT, payload: 10, version: 2 }).utxos[0]!,
      special(9, { inputs: ORDINARY_INPUT, payload: 10, version: 2 }).hex,
    ),
    'its transaction is not a Bitcoin transaction',
  )
  const foreign = special(5, { inputs: COINBASE_INPUT, payload: 70 })
  assert.equal(
    utxo.unspendable(net('DOGE'), foreign.utxos[0]!, foreign.hex),
    'its transaction is not a Bitcoin transaction',
  )
})

test('reports why a coin cannot be spent before a transaction is built', () => {
  const network = net('BCH')
  const funded = fund(network, [{ value: 5000n, path: [1, network.chain_index, 0] }])
  const [coin] = funded.utxos as [utxo.Utxo]
  assert.equal(utxo.unspendable(network, coin, funded.hex), null)
  assert.equal(
    utxo.unspendable(network, { ...coin, vout: 1 }, funded.hex),
    'its transaction has no such output',
  )
  assert.equal(
    utxo.unspendable(network, { ...coin, txid: '11'.repeat(32) }, funded.hex),
    'its transaction has another id',
  )
  assert.match(
    utxo.unspendable(network, { ...coin, value: 4999n }, funded.hex) ?? '',
    /another address or amount than recorded/,
  )
  // CashTokens data comes before the script.
  const tokens = new Transaction()
  tokens.version = 2
  tokens.addInput(Buffer.alloc(32, 3), 0)
  tokens.addOutput(
    Buffer.concat([
      Buffer.of(0xef),
      Buffer.alloc(32, 9),
      Buffer.of(0x10, 5),
      utxo.scriptOf(network, coin.address),
    ]),
    5000n,
  )
  assert.match(
    utxo.unspendable(network, { ...coin, txid: tokens.getId() }, tokens.toHex()) ?? '',
    /carries tokens, or has another address/,
  )
})
