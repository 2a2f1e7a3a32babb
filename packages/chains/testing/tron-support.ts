import {
  familyOf,
  readRegistryFile,
  tron,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from '../src/index.ts'
import { publicKeyAt } from './support.ts'

const file = readRegistryFile()

/** Returns networks and assets regardless of `ready`. */
export function networkOf(mode: 'local' | 'mainnet'): Network {
  const {
    ready: _,
    mainnet,
    local,
    ...line
  } = file.networks.find(({ code }) => code === 'TRX') as (typeof file.networks)[number]
  return { ...line, ...(mode === 'local' ? local : mainnet), mode }
}

export function assetsOf(mode: 'local' | 'mainnet'): Asset[] {
  return file.assets
    .filter(({ network }) => network === 'TRX')
    .map((line) => ({
      asset_name: line.asset_name,
      name: line.name,
      ticker: line.ticker,
      blockchain: 'Tron',
      network: 'TRX',
      family: 'tron',
      decimals: line.decimals,
      type: line.type,
      contract_address: line.contract_address?.[mode] ?? null,
      fee_asset: 'TRX',
      takes_tag: false,
      requires_tag: false,
      min_withdrawal: line.min_withdrawal,
      issuer: null,
      bridged: false,
      status: 'active',
      status_since: null,
      status_reason: null,
    }))
}

export const TRX = networkOf('mainnet')
export const ASSETS = assetsOf('mainnet')
export const NATIVE = ASSETS.find(({ type }) => type === 'native') as Asset
export const USDT_TRX = ASSETS.find(({ asset_name }) => asset_name === 'USDT_TRX') as Asset
export const PATH = [1, 195, 0]
export const TO = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
export const REFERENCE: tron.TronReference = {
  ...tron.refBlock(60_000_000, '0000000003938700a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778'),
  expiration: 1_700_000_600_000,
  timestamp: 1_700_000_000_123,
}
export const publicKey = publicKeyAt(PATH)
export const OWNER = familyOf(TRX).address(TRX, publicKey)
const common = { reference: REFERENCE, publicKey, path: PATH }

/** One transaction of each contract type. */
export const SHAPES: Record<string, () => UnsignedTransaction> = {
  TransferContract: () =>
    tron.buildTransfer(TRX, { ...common, asset: NATIVE, to: TO, amount: 1_234_567n }),
  TriggerSmartContract: () =>
    tron.buildTransfer(TRX, {
      ...common,
      asset: USDT_TRX,
      to: TO,
      amount: 5_000_000n,
      feeLimit: 30_000_000n,
    }),
  FreezeBalanceV2Contract: () =>
    tron.buildFreeze(TRX, { ...common, amount: 10_000_000n, resource: 'ENERGY' }),
  UnfreezeBalanceV2Contract: () =>
    tron.buildUnfreeze(TRX, { ...common, amount: 10_000_000n, resource: 'BANDWIDTH' }),
  WithdrawExpireUnfreezeContract: () => tron.buildWithdraw(TRX, common),
  DelegateResourceContract: () =>
    tron.buildDelegate(TRX, { ...common, amount: 10_000_000n, resource: 'ENERGY', receiver: TO }),
  UnDelegateResourceContract: () =>
    tron.buildUndelegate(TRX, {
      ...common,
      amount: 10_000_000n,
      resource: 'BANDWIDTH',
      receiver: TO,
    }),
}
