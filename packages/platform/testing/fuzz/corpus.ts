import {
  cardano,
  CHANGE_INDEX,
  evm,
  familyOf,
  loadRegistry,
  publicKeysBelow,
  solana,
  stellar,
  tron,
  utxo,
  xrp,
  type Asset,
  type Network,
  type PublicKeyAt,
  type UnsignedTransaction,
} from '@custody/chains'
import { ed25519 } from '@noble/curves/ed25519.js'
import { Transaction } from 'bitcoinjs-lib'
import { addressBytes } from '../../../chains/src/cardano/address.ts'
import { encodeBody, hashOf } from '../../../chains/src/cardano/body.ts'
import { publicKeyAt as secp256k1Keys } from '../../../chains/testing/support.ts'

/** A valid transaction, and addresses of its network. */
export interface Sample {
  network: Network
  assets: readonly Asset[]
  unsigned: UnsignedTransaction
  publicKeyAt: PublicKeyAt
}

const registry = loadRegistry('local')
const chainCode = new Uint8Array(32).fill(1)
const ed25519Keys = publicKeysBelow({
  curve: 'ed25519',
  publicKey: ed25519.getPublicKey(chainCode),
  chainCode,
})
const keysOf = (network: Network): PublicKeyAt =>
  network.curve === 'ed25519' ? ed25519Keys : secp256k1Keys
const pathOf = (network: Network, index = 0): number[] => [1, network.chain_index, index]
const addressOf = (network: Network, index = 0): string =>
  familyOf(network).address(network, keysOf(network)(pathOf(network, index)))
/** Returns a foreign receiving address. */
const payeeOf = (network: Network): string =>
  familyOf(network).address(network, keysOf(network)([7, network.chain_index, 3]))

function ofUtxo(network: Network): UnsignedTransaction {
  const funding = new Transaction()
  funding.version = 2
  funding.addInput(Buffer.alloc(32, 9), 1)
  for (let at = 0; at < 3; at++)
    funding.addOutput(utxo.scriptOf(network, addressOf(network, at)), 200_000_000n)
  const utxos = Array.from({ length: 3 }, (_, vout) => ({
    txid: funding.getId(),
    vout,
    value: 200_000_000n,
    path: pathOf(network, vout),
    address: addressOf(network, vout),
  }))
  const [to, amount] = [payeeOf(network), 350_000_000n]
  const changeAddress = addressOf(network, CHANGE_INDEX)
  const rate = BigInt(network.utxo?.min_fee_rate ?? 1) * 5000n
  const selection = utxo.selectCoins(network, { utxos, to, amount, changeAddress, feeRate: rate })
  return utxo.buildTransfer(network, {
    selection,
    to,
    amount,
    changeAddress,
    changePath: pathOf(network, CHANGE_INDEX),
    previous: new Map([[funding.getId(), funding.toHex()]]),
  })
}

function ofCardano(network: Network): UnsignedTransaction {
  const outputs = [0, 1].map((index) => ({
    address: addressBytes(network, addressOf(network, index)),
    coin: 60_000_000n,
    assets: new Map(index === 0 ? [[`${'ab'.repeat(28)}746f6b656e`, 7n]] : []),
  }))
  const body = encodeBody({
    inputs: [{ txid: '1'.padStart(64, '0'), index: 0 }],
    outputs,
    fee: 200_000n,
    ttl: 150_000_000n,
  })
  const txid = Buffer.from(hashOf(body)).toString('hex')
  const coins = outputs.map(({ coin, assets }, vout) => ({
    txid,
    vout,
    value: coin,
    path: pathOf(network, vout),
    address: addressOf(network, vout),
    riders:
      assets.size === 0
        ? null
        : {
            assets: Object.fromEntries([...assets].map(([unit, count]) => [unit, String(count)])),
            script_bytes: 0,
          },
  }))
  const order = {
    to: payeeOf(network),
    amount: 70_000_000n,
    changeAddress: addressOf(network, CHANGE_INDEX),
    ttl: 150_000_000n,
  }
  const selection = cardano.selectCoins(network, {
    ...order,
    coins,
    rate: 44n,
    parameters: cardano.PARAMETERS,
  })
  return cardano.buildTransfer(network, {
    ...order,
    selection,
    changePath: pathOf(network, CHANGE_INDEX),
    previous: new Map([[txid, Buffer.from(body).toString('hex')]]),
  })
}

function ofTron(network: Network, assets: readonly Asset[]): UnsignedTransaction[] {
  const reference = {
    ...tron.refBlock(
      60_000_000,
      '0000000003938700a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778',
    ),
    expiration: 1_700_000_600_000,
    timestamp: 1_700_000_000_000,
  }
  const common = { reference, publicKey: keysOf(network)(pathOf(network)), path: pathOf(network) }
  const [to, receiver] = [payeeOf(network), payeeOf(network)]
  return [
    ...assets.map((asset) =>
      tron.buildTransfer(network, {
        ...common,
        asset,
        to,
        amount: 1_234_567n,
        ...(asset.type === 'token' ? { feeLimit: 30_000_000n } : {}),
      }),
    ),
    tron.buildFreeze(network, { ...common, amount: 10_000_000n, resource: 'ENERGY' }),
    tron.buildUnfreeze(network, { ...common, amount: 10_000_000n, resource: 'BANDWIDTH' }),
    tron.buildWithdraw(network, common),
    tron.buildDelegate(network, { ...common, amount: 10_000_000n, resource: 'ENERGY', receiver }),
    tron.buildUndelegate(network, {
      ...common,
      amount: 10_000_000n,
      resource: 'BANDWIDTH',
      receiver,
    }),
  ]
}

function samplesOf(network: Network, assets: readonly Asset[]): UnsignedTransaction[] {
  const path = pathOf(network)
  const publicKey = keysOf(network)(path)
  const to = payeeOf(network)
  switch (network.family) {
    case 'utxo':
      return [ofUtxo(network)]
    case 'evm':
      return assets.map((asset) =>
        evm.buildTransfer(network, {
          asset,
          to,
          amount: 10n ** 6n,
          nonce: 7n,
          gas: 90_000n,
          path,
          fee: {
            maxFeePerGas: 30_000_000_000n,
            maxPriorityFeePerGas: network.legacy_gas_price ? 30_000_000_000n : 1_000_000_000n,
            legacy: network.legacy_gas_price === true,
          },
        }),
      )
    case 'xrp':
      return [null, '7'].map((tag) =>
        xrp.buildPayment(network, {
          to,
          tag,
          amount: 1_000_000n,
          fee: 12n,
          sequence: 7n,
          validUntil: 100,
          publicKey,
          path,
        }),
      )
    case 'stellar':
      return [null, '7', 'rent', `hash:${'ab'.repeat(32)}`].flatMap((tag) =>
        [true, false].map((create) =>
          stellar.buildPayment(network, {
            to,
            tag,
            amount: 50_000_000n,
            fee: 100n,
            sequence: 9n,
            validUntil: 1_900_000_000,
            create,
            publicKey,
            path,
          }),
        ),
      )
    case 'tron':
      return ofTron(network, assets)
    case 'solana': {
      const blockhash = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
      return assets.flatMap((asset) => [
        solana.buildTransfer(network, {
          asset,
          to,
          amount: 1_500_000n,
          blockhash,
          unitPrice: 1000n,
          publicKey,
          path,
        }),
        ...(asset.type === 'token'
          ? [
              solana.buildTokenSweep(network, {
                asset,
                amount: 5n,
                blockhash,
                units: 80_000,
                unitPrice: 0n,
                from: { publicKey: keysOf(network)(pathOf(network, 4)), path: pathOf(network, 4) },
                omnibus: { publicKey, path },
              }),
            ]
          : []),
      ])
    }
    default:
      return [ofCardano(network)]
  }
}

/** Returns one transaction of each network and type, each of which can be decoded. */
export function corpus(): Sample[] {
  return registry.networks.flatMap((network) => {
    const assets = registry.assetsOf(network.code)
    const publicKeyAt = keysOf(network)
    return samplesOf(network, assets).map((unsigned) => {
      familyOf(network).decode(network, unsigned, assets, publicKeyAt)
      return { network, assets, unsigned, publicKeyAt }
    })
  })
}

/** Returns addresses of every network, in each known notation. */
export function addresses(): { network: Network; address: string }[] {
  return registry.networks.flatMap((network) =>
    [payeeOf(network), addressOf(network)].map((address) => ({ network, address })),
  )
}
