/** Returns one line for each deposit, which begins with the ID that `suspense assign` takes. */
export const showSuspense = (rows: readonly Record<string, unknown>[]): string[] => {
  const lines = rows.map((each) =>
    [
      each['id'],
      each['created_at'],
      `${String(each['amount'])} ${String(each['asset'])}`,
      `to ${String(each['address'])} tag ${String(each['address_tag'] ?? '-')}`,
      `from ${String(each['sender'] ?? '?')}`,
      each['workspace'],
      each['hash'],
    ]
      .map(String)
      .join('  '),
  )
  return lines.length > 0 ? lines : ['no deposit is in suspense']
}
