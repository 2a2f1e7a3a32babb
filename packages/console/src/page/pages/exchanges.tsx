import { useState } from 'preact/hooks'
import { query } from '../api/http.ts'
import { mirror, pageAt } from '../api/scope.ts'
import { sign } from '../api/sign.ts'
import type {
  ExchangeAccount,
  ExchangeInfo,
  ExchangeTransfer,
  Page as PageOf,
} from '../api/types.ts'
import { useAction, useRead } from '../api/use.ts'
import { toast } from '../parts/announce.tsx'
import { Button, Check, Choice, Dialog, Field, LinkButton, onSubmit, Text } from '../parts/form.tsx'
import { KeyNotice } from '../parts/key-notice.tsx'
import { Card, Empty, Page, ProblemNote } from '../parts/page.tsx'
import { TransfersTable } from '../parts/exchange-transfers.tsx'
import { Time } from '../parts/values.tsx'
import { Status } from '../parts/status.tsx'
import { pageInQuery, Pager, Table } from '../parts/table.tsx'
import { go } from '../router.ts'

const SUPPORT = {
  tested: 'verified against its own error codes',
  generic: 'according to ccxt',
  'read-only': 'read-only',
} as const
const LIMIT = 20

function Link({ onClose }: { onClose(): void }) {
  const exchangesInfo = useRead<{ data: ExchangeInfo[] }>(mirror('/dac/v1/exchanges'))
  const all =
    exchangesInfo.data?.data.toSorted(
      (a, b) =>
        Number(b.support === 'tested') - Number(a.support === 'tested') ||
        a.name.localeCompare(b.name),
    ) ?? []
  const [exchange, setExchange] = useState('')
  const [label, setLabel] = useState('')
  const [key, setKey] = useState('')
  const [secret, setSecret] = useState('')
  const [passphrase, setPassphrase] = useState('')
  const [mayWithdraw, setMayWithdraw] = useState(false)
  const { isBusy, problem, run } = useAction()
  const chosen = all.find(
    (each) => each.exchange === (exchange === '' ? all[0]?.exchange : exchange),
  )
  const submit = () =>
    run(async () => {
      const made = await sign<ExchangeAccount>('POST', '/dac/v1/exchange-accounts', {
        exchange: chosen?.exchange,
        label: label.trim(),
        api_key: key.trim(),
        api_secret: secret,
        allow_withdrawal: mayWithdraw,
        ...(chosen?.passphrase === true ? { passphrase } : {}),
      })
      setSecret('')
      toast('The account is linked')
      go(pageAt(`/exchanges/${made.id}`))
    })
  const error = (field: string) => (problem?.field === field ? problem.message : null)
  return (
    <Dialog title="Link an exchange account" onClose={onClose} isWide>
      <form class="grid-form" onSubmit={onSubmit(submit)}>
        <Choice
          label="Exchange"
          value={chosen?.exchange ?? ''}
          onValue={setExchange}
          options={all.map((each) => [each.exchange, each.name])}
          hint={chosen === undefined ? 'Loading the list' : `Orders ${SUPPORT[chosen.support]}`}
        />
        <Text
          label="Label"
          value={label}
          onValue={setLabel}
          required
          maxLength={100}
          hint="For you"
        />
        <Text
          label="API key"
          value={key}
          onValue={setKey}
          required
          maxLength={1000}
          class="input code"
          error={error('api_key')}
          hint="Made at the exchange; it is tried before it is kept"
        />
        <Field
          label="Secret"
          error={error('api_secret')}
          hint="Stored encrypted; it is never shown again"
        >
          {(props) => (
            <textarea
              class="input"
              rows={2}
              {...props}
              required
              maxLength={4000}
              autoComplete="off"
              spellcheck={false}
              value={secret}
              onInput={(event) => setSecret(event.currentTarget.value)}
            />
          )}
        </Field>
        {chosen?.passphrase === true ? (
          <Text
            label="Passphrase"
            type="password"
            value={passphrase}
            onValue={setPassphrase}
            required
            maxLength={200}
            error={error('passphrase')}
          />
        ) : null}
        <div class="is-wide">
          <Check
            label="The key may withdraw"
            hint="Only to your own wallets. Without this option, a key that may withdraw is refused. Prefer a key that may not withdraw."
            value={mayWithdraw}
            onValue={setMayWithdraw}
          />
        </div>
        <div class="is-wide">
          <KeyNotice />
        </div>
        {problem !== null &&
        problem.field !== null &&
        ['api_key', 'api_secret', 'passphrase'].includes(problem.field) ? null : (
          <div class="is-wide">
            <ProblemNote problem={problem} />
          </div>
        )}
        <div class="form-end">
          <Button
            kind="primary"
            type="submit"
            icon="key"
            isBusy={isBusy}
            disabled={label.trim() === '' || key.trim() === '' || secret.trim() === ''}
          >
            Link it
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Page of accounts at exchanges, and of transfers to and from them. */
export function Exchanges() {
  const accounts = useRead<PageOf<ExchangeAccount>>(
    mirror('/dac/v1/exchange-accounts?limit=100'),
    /^exchange_account\./,
  )
  const transfers = useRead<PageOf<ExchangeTransfer>>(
    mirror(`/dac/v1/exchange-transfers${query({ page: pageInQuery(), limit: LIMIT })}`),
    /^exchange_transfer\./,
  )
  const [isLinking, setLinking] = useState(false)
  const link = (
    <Button kind="primary" icon="plus" onClick={() => setLinking(true)}>
      Link an account
    </Button>
  )
  return (
    <Page
      title="Exchanges"
      lead="Your accounts at exchanges. Their balances are in the ledger and are compared with the exchange every minute."
      actions={
        <>
          <LinkButton href={pageAt('/orders')}>Orders</LinkButton>
          {link}
        </>
      }
    >
      <Card title="Accounts" isBare>
        <Table
          label="Exchange accounts"
          reading={accounts}
          rows={accounts.data?.data}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pageAt(`/exchanges/${id}`)}
          columns={[
            { head: 'Account', cell: ({ label }) => label },
            { head: 'Exchange', cell: ({ exchange }) => exchange },
            {
              head: 'State',
              cell: ({ status, difference }) =>
                status === 'active' && difference.length > 0 ? (
                  <Status of="warn" word="Differs from the ledger" />
                ) : (
                  <Status of={status} />
                ),
            },
            {
              head: 'May',
              cell: ({ permissions, allow_withdrawal: allowed }) =>
                [permissions.trade === false ? null : 'trade', allowed ? 'withdraw' : null]
                  .filter((each) => each !== null)
                  .join(', ') || 'read',
            },
            { head: 'Key', isMinor: true, cell: ({ key_hint: hint }) => <code>{hint}</code> },
            { head: 'Checked', isMinor: true, cell: ({ checked_at: at }) => <Time at={at} /> },
          ]}
          empty={
            <Empty icon="exchange" title="No exchange accounts yet" action={link}>
              Link one by its API key, to trade there and to move coins there and back.
            </Empty>
          }
        />
      </Card>
      <Card title="Transfers to and from exchanges" isBare>
        <TransfersTable reading={transfers} rows={transfers.data?.data} />
        {transfers.data === undefined ? null : <Pager {...transfers.data} />}
      </Card>
      {isLinking ? <Link onClose={() => setLinking(false)} /> : null}
    </Page>
  )
}
