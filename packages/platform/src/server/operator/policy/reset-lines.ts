import type { PolicyView } from './nodes.ts'

const NODES = [1, 2, 3]
const namesOf = (nodes: readonly number[]): string =>
  nodes.map((node) => `signer ${node}`).join(', ')

/** Returns a line for each reset that waits at these nodes or their peers. */
export function resetLines(views: readonly Pick<PolicyView, 'reset'>[]): string[] {
  const resets = views.flatMap(({ reset }) => (reset ? [reset] : []))
  const given = Map.groupBy(
    resets.flatMap(({ given_by }) => given_by),
    ({ hash }) => hash,
  )
  return [...given].map(([hash, words]) => {
    const by = NODES.filter((node) => words.some((word) => word.node === node))
    const missing = NODES.filter((node) => !by.includes(node))
    const times = resets.flatMap((each) =>
      each.hash === hash && each.acts_at !== null ? [each.acts_at] : [],
    )
    const when =
      missing.length > 0
        ? `it waits for the operator of ${namesOf(missing)}`
        : times.length === 0
          ? 'the nodes have not yet read all of them'
          : `in force from ${new Date(Math.max(...times) * 1000).toISOString()}, unless the people of the policy approve a change before`
    return `RESET: entered at ${namesOf(by)}, to the policy with hash ${hash}; ${when}`
  })
}
