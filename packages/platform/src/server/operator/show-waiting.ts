/** Returns one line for each operation, which begins with its ID. */
export function waitingLines({ waiting, more }: Record<string, unknown>): string[] {
  const lines = (waiting as Record<string, unknown>[]).map((each) =>
    [
      each['id'],
      each['created_at'],
      each['workspace'],
      each['parent_id'] === null
        ? each['kind']
        : `${String(each['kind'])} of ${String(each['parent_id'])}`,
      each['state'],
      `${String(each['amount'])} ${String(each['asset'])}`,
      `attempts: ${String(each['attempts'])}`,
      each['last_error'] ?? 'no error',
    ]
      .map(String)
      .join('  '),
  )
  if (more === true) lines.push('and more, which are not listed')
  return lines.length > 0 ? lines : ['no transaction is waiting']
}
