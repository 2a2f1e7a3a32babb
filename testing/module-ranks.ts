import { dirname, join } from 'node:path'

/**
 * One rank: a folder of src (`store`), or a file directly in src (`errors.ts`). Entries of an inner
 * list have equal rank and must not import each other.
 */
export type Rank = string | readonly string[]

const namesOf = (rank: Rank): readonly string[] => (typeof rank === 'string' ? [rank] : rank)

/** Returns the folder or file directly below src of a path. */
const moduleOf = (path: string): string => path.split('/')[0] as string

/**
 * Returns violations of a ranking, lowest rank first: an import of a higher or equal rank,
 * type-only or not; a folder without a rank; and a rank without a folder.
 * @param imports specifiers of each module, by path below src
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
    .filter((folder) => !rankOf.has(folder))
    .map((folder) => `${folder} has no rank`)
  const gone = [...rankOf.keys()]
    .filter((folder) => !there.has(folder))
    .map((folder) => `${folder} has a rank and is not there`)
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
