import { TestEvents } from '../../src/events/events/test-events.ts'
import { exchangeDestinationsOf } from '../../src/commerce/exchange-transfers/destination.ts'
import {
  loadRegistry,
  type CardanoClient,
  type EvmClient,
  type FamilyName,
  type Network,
  type SolanaClient,
  type StellarClient,
  type TronClient,
  type UtxoClient,
  type XrpClient,
} from '@custody/chains'
import { changeApprovalsOf } from '../../src/custody/policies/changes/change-approvals.ts'
import { AddressBook } from '../../src/custody/addresses/book.ts'
import { createKinds } from '../../src/server/app/kinds.ts'
import { forwards } from '../../src/custody/auto-forwarding/forwards.ts'
import { invoices } from '../../src/commerce/invoices/loop.ts'
import type { Chain, ChainContext } from '../../src/core/engine/chain.ts'
import { DatabaseHold } from '../../src/core/engine/database-hold.ts'
import { Networks } from '../../src/core/engine/networks.ts'
import type { Application } from '../../src/server/app/application.ts'
import { KnownWallets } from '../../src/custody/assets/find-wallet.ts'
import { LoadMonitor } from '../../src/core/load-monitor.ts'
import { Receipts } from '../../src/core/signing/receipts.ts'
import { Withdrawals } from '../../src/custody/transactions/write-withdrawal.ts'
import { cardanoChain } from '../../src/core/families/cardano/index.ts'
import { evmChain } from '../../src/core/families/evm/index.ts'
import { solanaChain } from '../../src/core/families/solana/index.ts'
import { stellarChain, xrpChain } from '../../src/core/families/tagged/index.ts'
import { tronChain } from '../../src/core/families/tron/index.ts'
import { utxoChain } from '../../src/core/families/utxo/index.ts'
import { createTanks } from '../../src/custody/gas-tanks/tanks.ts'

const MAKERS: Partial<
  Record<FamilyName, (context: ChainContext, network: Network, client: unknown) => Chain>
> = {
  utxo: (context, network, client) => utxoChain(context, network, client as UtxoClient),
  evm: (context, network, client) => evmChain(context, network, client as EvmClient),
  tron: (context, network, client) => tronChain(context, network, client as TronClient),
  xrp: (context, network, client) => xrpChain(context, network, client as XrpClient),
  stellar: (context, network, client) => stellarChain(context, network, client as StellarClient),
  solana: (context, network, client) => solanaChain(context, network, client as SolanaClient),
  cardano: (context, network, client) => cardanoChain(context, network, client as CardanoClient),
}

/** Creates the real chain implementation of a network's family over a scripted client. */
export function chainOver(context: ChainContext, network: Network, client: unknown): Chain {
  const make = MAKERS[network.family]
  if (!make) throw new Error(`no scripted client stands in for a chain of ${network.family}`)
  return make(context, network, client)
}

const registry = loadRegistry('local')

/**
 * Creates an application with the real transaction kinds, gas tanks and families over scripted
 * clients. Members that neither the fixture nor `parts` has are absent.
 * @param clients scripted clients by network code; `networks` replaces a network of the registry
 */
export function fixtureServices(
  parts: object,
  clients: Readonly<Record<string, unknown>>,
  networks: Readonly<Record<string, Network>> = {},
): Application {
  const { signers, environment, database, log } = parts as Application
  const pressure = new LoadMonitor()
  const services = {
    pressure,
    receipts: new Receipts({ signers, environment, database, log, pressure }),
    knownWallets: new KnownWallets(database),
    withdrawals: new Withdrawals(database),
    registry,
    forwards,
    invoices,
    checkout: {
      base: 'http://pay.test',
      moved: { ring: () => undefined },
      checkWebhook: () => undefined,
    },
    addresses: new AddressBook(() => services),
    exchangeDestinations: exchangeDestinationsOf(() => services),
    hold: new DatabaseHold(),
    work: { ring: () => undefined },
    reconciling: { job: null },
    testEvents: new TestEvents(),
    prices: { price: () => null },
    policyChanges: changeApprovalsOf({ database, registry, signers }),
    // No workspace of a fixture has a policy.
    policies: {
      isGoverned: () => false,
      judge: () => Promise.resolve({ kind: 'none' }),
      noteGoverned: () => undefined,
      mayJudgeAgain: () => true,
    },
    ...parts,
  } as unknown as Application
  Object.assign(services, { kinds: createKinds(services), tanks: createTanks(services) }, parts)
  setChains(services, clients, networks)
  return services
}

/** Replaces the scripted clients of existing services. */
export function setChains(
  services: Application,
  clients: Readonly<Record<string, unknown>>,
  networks: Readonly<Record<string, Network>> = {},
): void {
  const chains = Object.entries(clients).map(([code, client]) =>
    chainOver(services, networks[code] ?? (registry.network(code) as Network), client),
  )
  Object.assign(services, { networks: new Networks(chains) })
}
