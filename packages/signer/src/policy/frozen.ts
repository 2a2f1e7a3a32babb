import { meaningOf, type Registry } from '@custody/chains'
import type { Store } from '../store/index.ts'

/**
 * Rule 5: the definition of a ticker and a network is frozen when this node first uses it. The node
 * does not start with a changed registry.
 */
export function freezeRegistry(registry: Registry, store: Store): void {
  const fresh: Record<string, string> = {}
  const meanings: [string, unknown][] = [
    ...registry.networks.map(
      (network) => [`network:${network.code}`, meaningOf(network)] as [string, unknown],
    ),
    ...registry.assets.map(
      (asset) =>
        [
          `asset:${asset.asset_name}`,
          [
            asset.network,
            asset.decimals,
            asset.type,
            asset.contract_address?.toLowerCase() ?? null,
          ],
        ] as [string, unknown],
    ),
  ]
  for (const [name, value] of meanings) {
    const meaning = JSON.stringify(value)
    const existing = store.state.frozen.get(name)
    if (name.startsWith('network:') && existing !== undefined) {
      const [[mode], [before]] = [value as [string], JSON.parse(existing) as [string]]
      if (mode !== before) {
        const started = `This node belongs to the network "${before}", with which it was first started; config.json contains mode "${mode}".`
        throw new Error(`${started} A node of another network requires its own home`)
      }
    }
    if (existing === undefined) fresh[name] = meaning
    else if (existing !== meaning)
      throw new Error(
        `The registry defines ${name} differently than this node: ${meaning}, not ${existing}`,
      )
  }
  if (Object.keys(fresh).length > 0) store.append('registry', { frozen: fresh })
}
