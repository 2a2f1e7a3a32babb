import { dirname, join } from 'node:path'

/**
 * One step of a ranking: a folder of src (`store`) or a file directly in src (`errors.ts`). The
 * members of an inner list have the same rank, and must not import each other.
 */
export type Rank = string | readonly string[]

const namesOf = (rank: Rank): readonly string[] => (typeof rank === 'string' ? [rank] : rank)

/** The room of a path below src. */
const moduleOf = (path: string): string => path.split('/')[0] as string

/**
 * Returns the violations of a ranking, the lowest rank first: an import that leads up or sideways
 * (also of types only), a module without a rank, and a rank without a module.
 * @param imports by path below src: the specifiers of each module
 */
export function outOfRank(
  ranks: readonly Rank[],
  imports: ReadonlyMap<string, readonly string[]>,
): string[] {
  const rankOf = new Map(
    ranks.flatMap((rank, at) => namesOf(rank).map((name) => [name, at] as const)),
  )
  const there = new Set([...imports.keys()].map(moduleOf))
  const unknown = [...there]
    .filter((room) => !rankOf.has(room))
    .map((room) => `${room} has no rank`)
  const gone = [...rankOf.keys()]
    .filter((room) => !there.has(room))
    .map((room) => `${room} has a rank and is not there`)
  const upward = [...imports].flatMap(([path, specifiers]) =>
    specifiers.flatMap((specifier) => {
      const own = moduleOf(path)
      const target = specifier.startsWith('.') ? join(dirname(path), specifier) : null
      if (
        !rankOf.has(own) ||
        target === null ||
        target.startsWith('..') ||
        moduleOf(target) === own
      )
        return []
      return (rankOf.get(moduleOf(target)) ?? Infinity) < (rankOf.get(own) as number)
        ? []
        : [`${path} imports ${specifier}`]
    }),
  )
  return [...unknown, ...gone, ...upward]
}
