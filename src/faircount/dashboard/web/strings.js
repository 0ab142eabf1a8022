// Every text of the dashboard, in every language. {name} is filled in. Write whole sentences: the
// order of words differs between languages. Those about levels are in survey_level_strings.js.

import { de as germanLevels, en as englishLevels } from "./survey_level_strings.js";

const en = {
  language: "English",
  direction: "ltr",
  title: "faircount: your surveys",
  chooseLanguage: "Language",
  loading: "Loading …",
  back: "Back",
  no: "No",
  toList: "Your surveys",
  percent: "{value} %",
  range: "{low} to {high} %",
  epsilon: "Epsilon",
  delta: "Delta",
  coordinator: "coordinator (S1)",
  aggregator: "aggregator (S2)",
  noOperator: "an unnamed operator",
  problemTitle: "That did not work",

  // errors: problem_ says everything, about_ stands before the program's own English text
  problem_notRunning:
    "The dashboard's program does not respond. Is faircount dashboard still running?",
  problem_stranger: "Please open the address that faircount dashboard printed.",
  problem_too_few_items: "Write at least two answers, one per line.",
  problemQuestion: "Question {question}:",
  problem_two_items: "Write exactly two answers. With more of them, choose “one of several”.",
  problem_too_few_rows: "Write at least two rows, one per line.",
  problem_too_few_columns: "Write at least two columns, one per line.",
  problem_reserved_item:
    "“{item}” cannot be one of the answers. Use the tick for “prefer not to say”, or choose who is " +
    "asked.",
  problem_most_range: "How many may be chosen: please enter a whole number from 1 to {largest}.",
  problem_number_range: "The largest number must be above the smallest one.",
  problem_number_step:
    "The step must be above 0 and divide the range, such as 0 to 40 in steps of 0.5.",
  problem_number_steps: "There are more than {most} steps. Choose a larger step.",
  problem_bands: "Write at least three edges, one per line, each above the one before.",
  problem_branch_question:
    "It is asked depending on a question that comes later or has no single answer. Move that one " +
    "up, or ask everybody.",
  problem_branch_items: "Tick the answers to question {earlier} with which this one is asked.",
  problem_text_too_long: "Questions and answers have at most {most} characters.",
  problem_one_question_only:
    "This mechanism is for one question with exactly one answer. Leave the choice to the planner.",
  problem_too_many_questions: "A survey has at most {most} questions.",
  about_translations:
    "The texts in other languages do not fit the questions any more. Remove the other languages, " +
    "or correct the file and load it again. The program says:",
  about_questions_unusable: "These questions cannot be asked like this. The program says:",
  about_questions_file: "{file} cannot be used. Correct it and load it again. The program says:",
  problem_not_a_number: "{field}: please enter a number.",
  problem_not_whole: "{field}: please enter a whole number above 0.",
  problem_not_above_zero: "{field}: please enter a number above 0.",
  problem_not_inside: "{field}: please enter a number above 0 and below 1.",
  problem_minimum_form:
    "Minimum number of responses: please enter a number, such as 100, or a rate, such as 40%.",
  problem_response_rate_form:
    "Expected response rate: please enter a number above 0 and at most 100.",
  problem_expects_too_few:
    "You expect {expected} answers, but at least {minimum} are needed. Invite more people, or set " +
    "a lower minimum.",
  problem_closing_time_form: "Please enter the date and the time at which the survey closes.",
  problem_closing_time_passed:
    "The closing time has passed, or is more than a year away. Choose another one; a survey that " +
    "you have not opened yet can be copied as a new one.",
  problem_minimum_range: "The minimum number of responses must be {fewest} to {invited}.",
  problem_people: "Invite between {fewest} and {most} people.",
  problem_bad_name:
    "Use only letters, digits, - and _ in the name of a survey, at most 60 characters.",
  problem_too_many_invited:
    "The survey was planned for {planned} people, but the list has {invited}.",
  problem_too_few_invited:
    "The list has {invited} people, but {minimum} must answer. Invite more people, or plan a " +
    "survey for fewer.",
  problem_person_twice: "The list names somebody twice. Write one line per person.",
  problem_sheet_format: "{file} cannot be read. Save it as .xlsx or as CSV.",
  problem_sheet_no_columns: "{file} has no columns. Choose a table as .csv or .xlsx.",
  problem_sheet_csv: "{file} cannot be read as CSV. Is a quotation mark not closed?",
  problem_sheet_encoding: "{file} is not text. Save the sheet as CSV UTF-8, or choose the .xlsx file.",
  problem_sheet_unreadable: "{file} cannot be read as a spreadsheet. Save it again, or as CSV.",
  problem_sheet_too_large: "{file} is too large. Choose a table with one row per person.",
  problem_sheet_empty: "{file} is empty. Its first line must name the columns.",
  problem_sheet_no_people: "{file} has names of columns, and no people below them.",
  problem_sheet_no_header:
    "The first line of {file} has an e-mail address. Put a line above it that names the columns.",
  problem_sheet_no_title: "Column {column} of {file} has no name. Name it in the first line.",
  problem_sheet_title_twice: "{file} has several columns named {title}. Rename all but one.",
  problem_sheet_cells:
    "Line {line} of {file} has more cells than the first line, which has {columns}. Put a cell " +
    "that contains the delimiter into quotation marks.",
  problem_sheet_no_column: "The table has no column {column}. Choose another one.",
  problem_sheet_which_column:
    "Choose the column that tells people apart. These are possible: {columns}.",
  problem_sheet_address_missing:
    "Some people have nothing in the column {title} (lines {lines}). Fill it in, or remove them.",
  problem_sheet_address_broken:
    "The column {title} has something that is no e-mail address (lines {lines}). Correct it.",
  problem_sheet_person_twice:
    "Somebody is in the table twice (lines {first} and {second}). Write one line per person.",
  problem_no_xlsx:
    "Spreadsheets need another package. Install it (pip install 'faircount[xlsx]'), or use CSV.",
  problem_mail_security: "The security of the mail server is one of: {names}.",
  problem_mail_account: "Give both a user and a password for the mail server, or neither.",
  problem_mail_plain_password:
    "The password would travel to {host} unencrypted. Choose starttls or tls.",
  problem_mail_login: "{host} refuses the user or the password for sending mail.",
  problem_mail_plain_only:
    "{host} does not offer STARTTLS on port {port}. If it expects TLS at once, usually on port " +
    "465, start the dashboard with FAIRCOUNT_SMTP_SECURITY=tls; if it is a relay in your own " +
    "network without encryption, with FAIRCOUNT_SMTP_SECURITY=none.",
  about_mail_away: "No mail can be sent through {host} right now:",
  problem_mail_sender: "Mails need a sender such as name@example.org.",
  problem_mail_over: "This survey is closed: nobody can answer any more.",
  problem_nobody_invited:
    "Nobody is invited to this survey yet. Make the invitations first: faircount survey invite.",
  problem_inviting_interrupted:
    "The coordinator knows no such survey of yours: inviting was interrupted, or the survey was " +
    "deleted or handed over. If it was interrupted, create the invitations again.",
  problem_mail_not_open: "This survey is not open yet, so the links would not work. Open it first.",
  problem_no_addresses:
    "Some people have no e-mail address. Create the survey with a table of people.",
  problem_reminded_lately: "The last reminder is less than a day old.",
  problem_mail_rate: "FAIRCOUNT_MAIL_RATE is a number of mails per minute above 0.",
  about_mail_stopped: "Sending stopped after {sent} mails. Send again to continue. The reason:",
  problem_mail_running: "Mails of this survey are being sent. Wait until they are, or stop it.",
  problem_mail_no_server:
    "No mail server is configured. Name it in FAIRCOUNT_SMTP_HOST, and start the dashboard again.",
  problem_label_refused:
    "A promise of this survey does not hold when it is computed again, so it gets no label. Ask " +
    "both operators.",
  problem_no_question: "Write the question that people are asked.",
  problem_empty_item: "One of the answers is empty.",
  problem_same_items: "People could not tell the answers “{first}” and “{second}” apart.",
  problem_budget_too_small: "A budget of epsilon {total} is too small for this survey.",
  problem_budget_differs:
    "This population has a budget of epsilon {total} already, which is never changed.",
  problem_one_address: "The file of both servers names one address for both.",
  problem_servers_interchanged:
    "Coordinator (S1) and aggregator (S2) are interchanged in the file of both servers.",
  problem_survey_exists: "You already have a survey with this name. Choose another name.",
  problem_not_worthwhile:
    "This survey would tell you nothing: the error is larger than the average share of an " +
    "answer. Invite more people, offer fewer answers, or allow a larger epsilon.",
  problem_too_many_of_name: "There are too many surveys of this name.",
  problem_budget_spent:
    "The privacy budget of this group does not allow another survey of epsilon {epsilon}: " +
    "{spent} of {total} is spent. Ask other people, or choose a smaller epsilon.",
  problem_unsigned_result:
    "The coordinator (S1) shows a result that the aggregator (S2) did not sign for this survey. " +
    "Do not use it, and ask both operators.",
  problem_operator_differs:
    "The {server} states another operator than the one that you expect. Check the servers file.",
  problem_no_result: "This survey ended without a result.",
  problem_unknown_mechanism: "This mechanism does not exist. Choose one of: {names}.",
  problem_other_version: "{file} was written by another version of faircount. Use that version.",
  problem_file_damaged: "{file} is damaged or was changed. Restore it from a copy.",
  problem_servers_file: "{file} must be JSON with the address and the token of both servers.",
  problem_not_installed:
    "A part of faircount is missing. Install it: pip install 'faircount[service]'",
  problem_unknown_language: "Invitations can be printed in: {names}.",
  problem_exchange_damaged: "{file} is damaged. Look into invitations.csv, then delete the file.",
  problem_nobody_of_this_name:
    "Nobody of this name is invited. Write the name as in invitations.csv.",
  problem_no_group_column: "The table of people has no column {column}.",
  problem_people_without_group:
    "{people} people have no {column}: write it into the table, or leave these people out.",
  problem_group_of_one:
    "The group {group} has one person, whose answer would be its result: merge it with another one.",
  problem_groups_too_small:
    "Some groups are too small to show anything: merge them with others, ask fewer questions or " +
    "allow a larger epsilon.",
  problem_several_groups:
    "This folder holds the surveys of several groups: open the survey of one group.",
  problem_others_invited:
    "Other people are already invited to this survey, and their invitations may be on the way. " +
    "Create another survey for these people.",
  problem_not_faircount:
    "The server's response cannot be read. Is this the address of a faircount server?",
  problem_certificates: "{file} does not contain certificates in PEM format.",
  problem_bad_call: "This page and its program do not fit together. Please reload the page.",
  problem_unknown_file: "A result can be saved as: {names}.",
  problem_no_such_invitation: "This invitation does not exist; there are {invited}.",
  about_no_mechanism:
    "No mechanism can keep this promise. Allow a larger epsilon or delta, or invite more people. " +
    "The planner says:",
  problem_unreachable:
    "The {server} at {address} cannot be reached right now. Nothing is lost: please try again " +
    "later, and tell its operator if it lasts.",
  about_remote: "The {server} rejected this and says:",
  remote: "The {server} rejected this:",
  remote_list_fixed: "The survey has begun, so its list of people can no longer be changed.",
  remote_people_missing:
    "It knows only {known} of {people} people. Create the invitations again, so that it learns " +
    "about the others.",
  remote_too_many_people:
    "The survey has room for {most} invitations, and with these there would be {people}.",
  remote_too_few_people: "It knows {known} people, but {minimum} are needed. Invite more people.",
  remote_no_closing_time: "This phase has no closing time to extend. Close it when you are ready.",
  remote_not_open: "The survey is not open yet.",
  remote_too_few_answers:
    "There are {answers} answers, and {minimum} are needed. The survey stays open: extend it, or " +
    "end it without a result.",
  remote_survey_over: "The survey is over, so nothing about it can be changed.",
  remote_survey_running: "The survey is running. End it before you delete it.",
  remote_other_survey: "It already has another survey with the same number.",
  remote_other_budget:
    "This population already has another privacy budget, and a budget is never raised.",
  remote_no_population: "This population has no privacy budget there yet.",
  remote_other_operator:
    "Its operator has another name or key than this survey says. Create the survey again.",
  remote_operator_unsigned:
    "The operator of the aggregator (S2) has not signed this survey. Invite the people again.",
  remote_no_survey_keys:
    "This server did not make the keys of this survey for you. Create the survey again.",
  remote_no_token: "It does not accept the access token. Ask its operator for a new one.",
  remote_forbidden: "The access token belongs to another role. Use the one for owners.",
  remote_unknown: "It does not exist there, or it belongs to somebody else.",
  remote_early: "The survey is not over yet.",
  remote_too_many_requests: "There were too many requests. Please wait a moment.",
  remote_internal:
    "The server had an internal error. Nothing was changed; please tell its operator.",

  // list
  listTitle: "Your surveys",
  listCaption: "Surveys in this folder",
  listEmpty: "There is no survey in this folder yet.",
  listEmptyNext:
    "Start with a question: while you type, the planner shows how accurate the result will be.",
  listName: "Survey",
  listAnswers: "{responses} of {invited} answered",
  listQuestions: "{count} questions",
  listTooFew:
    "{name}: at this pace only {expected} people will have answered by the closing time, but " +
    "{minimum} are needed.",
  newSurvey: "New survey",
  stateUnknown: "Unknown right now",
  stateLast: "Last known: {phase}",
  stateDeleted: "Deleted from both servers",
  stateNotInvited: "Nobody is invited yet",

  // form
  groupQuestion: "What you ask",
  groupOwner: "About you",
  groupPeople: "The people you ask",
  groupPrivacy: "Privacy",
  groupBudget: "Asking the same people again",
  groupName: "Name of the survey",
  field_question: "Question",
  field_items: "Possible answers",
  hint_items: "One per line.",
  field_title: "Title of the survey (optional)",
  field_kind: "Kind",
  kind_one: "One of several answers",
  kind_yes: "Yes or no",
  kind_any: "Any of several answers",
  kind_most: "At most so many of several",
  kind_scale: "Scale (share of every answer)",
  kind_mean: "Scale (mean only, more exact)",
  kind_number: "Number in a range (mean)",
  kind_bands: "Number in bands (median)",
  kind_table: "Table of two questions",
  yesItems: "No\nYes",
  field_most: "How many of them people may choose",
  hint_most: "Fewer than there are answers.",
  field_low: "Smallest number",
  field_high: "Largest number",
  field_step: "Step (optional)",
  hint_step: "1 if you leave it empty. Answers are rounded to whole steps.",
  field_bands: "Edges of the bands",
  hint_bands: "One per line and ascending, such as 0, 18, 40, 65. A band includes its lower edge.",
  field_rows_text: "Question for the rows",
  field_rows: "Answers in the rows, one per line",
  field_columns_text: "Question for the columns",
  field_columns: "Answers in the columns, one per line",
  field_skip: "Offer “prefer not to say”",
  field_branch: "Who is asked",
  branchNone: "Everybody",
  branchQuestion: "Only if: {number}. {text}",
  branchItems: "Asked with these answers",
  questionAdd: "Add a question",
  questionOther: "Other kinds, and “prefer not to say”",
  questionNumber: "Question {number}",
  questionMoved: "Question {from} is now question {to}.",
  questionRemoved: "Question {number} was removed.",
  question_up: "Up",
  question_down: "Down",
  question_remove: "Remove",
  upLabel: "Up: move number {number}",
  downLabel: "Down: move number {number}",
  removeLabel: "Remove number {number}",
  fileTitle: "Load a questionnaire from a file",
  fileLabel: "TOML file",
  fileHint: "As for faircount survey create --questionnaire. It replaces what is above.",
  fileLoaded: "Questions loaded from {file}: {count}.",
  otherLanguages:
    "The file has the texts in these languages, too: {languages}. They can be changed only in the " +
    "file.",
  otherLanguagesRemove: "Remove the other languages",
  previewError: "95 % error: {error}",
  errorPoints: "±\u00a0{error} percentage points",
  errorUnits: "±\u00a0{error} (mean)",
  previewShare: "Share of epsilon: {epsilon} (group {group})",
  previewUseless:
    "Nothing can be learned from this question. Invite more people, ask fewer questions, or offer " +
    "fewer answers.",
  previewTarget: "Wanted by the file: ± {target} percentage points.",
  field_owner: "Who is asking",
  field_purpose: "What the result is for",
  field_contact: "Contact address",
  field_users: "Number of people invited",
  field_response_rate: "Expected response rate in percent (optional)",
  hint_response_rate:
    "How many of the people invited you expect to answer; 30 to 70 % are usual. The error is " +
    "stated for so many answers. Leave empty to see it for nearly everybody.",
  field_minimum: "Minimum number of responses",
  hint_minimum:
    "A number, or a rate such as 40%: with fewer answers there is no result. Leave empty for one " +
    "that suits the survey, usually a quarter of the people invited.",
  field_people: "Names or addresses (optional)",
  hint_people:
    "One per line, instead of the number. They stay on this computer; no server gets them.",
  sheetLabel: "Table of people (optional)",
  sheetHint:
    "A spreadsheet as CSV or XLSX; its first line names the columns. It stays on this computer; no " +
    "server gets it. All its columns come back beside the invitations.",
  sheetFound: "{count} people in {file}.",
  sheetFrom: "The same {count} people as in {survey}.",
  sheetColumn: "Column that tells people apart, such as their e-mail address",
  sheetChoose: "Choose a column",
  sheetFirst: "They begin with: {first}",
  sheetEncoding:
    "The file is not UTF-8 and was read as Excel writes it. Check that names look right, or save " +
    "it as CSV UTF-8.",
  sheetRemove: "Remove the table",
  sheetOthers: "Invite other people",
  timeTitle: "How long people can answer",
  timeFor: "For",
  timeUntil: "Until",
  timeUnit: "Days or hours",
  unit_days: "days",
  unit_hours: "hours",
  field_open_for: "For how long people can answer",
  timeCloses: "Closing date and time",
  timeNoteFor: "Opened now, it closes on {closes} (time zone: {zone}).",
  timeNoteUntil: "It closes on {closes} (time zone: {zone}), whenever you open it.",
  field_invitation_language: "Language of invitations, mails and results",
  field_epsilon: "Epsilon: how much the result may reveal about one answer",
  hint_epsilon:
    "Smaller values protect better but make the result less accurate. 1 is a common choice.",
  field_delta: "Delta: probability that more is revealed",
  hint_delta: "0.000001 is a common choice.",
  field_population: "Name of this group of people (optional)",
  hint_population:
    "Surveys among the same group share one privacy budget, which is never raised. Without a " +
    "name this survey has its own budget.",
  field_budget_epsilon: "Epsilon for all surveys of the group",
  field_budget_delta: "Delta for all surveys of the group",
  field_name: "Short name",
  hint_name: "Letters, digits, - and _. The folder of the survey gets this name.",
  create: "Create survey and invitations",
  creating: "Creating keys and invitations …",
  adviceTitle: "What to expect",
  adviceFirst:
    "Write your question and the possible answers. You will see here how accurate the result " +
    "will be.",
  adviceError: "95 % error: ± {error} %",
  adviceText:
    "In 95 of 100 such surveys, a share of those who answer is off by no more than this, if " +
    "{responses} of {invited} people do. Mechanism: {mechanism}.",
  adviceLargest: "Largest 95 % error: {error} (question {number})",
  adviceTextSeveral:
    "In 95 of 100 such surveys, an estimate is off by no more than its 95 % error, if {responses} " +
    "of {invited} people answer. Mechanism: {mechanism}.",
  adviceGroups:
    "Epsilon is for all answers of a person together. Questions of one group share their noise; a " +
    "single answer reveals at most the share of its group.",
  adviceMinimumSeveral:
    "The minimum number of responses is {minimum}; with so few, errors are {times} times as large.",
  adviceMinimumSame: "The minimum number of responses is {minimum}.",
  adviceProvenSheet:
    "Every response is proven to be one sheet of possible answers, so a manipulated program " +
    "cannot count for more.",
  adviceNotSeveral:
    "Some of these questions would tell you nothing: see beside them. Invite more people, ask " +
    "fewer questions, offer fewer answers, or allow a larger epsilon.",
  adviceMinimum:
    "The minimum number of responses is {minimum}; with so few, the 95 % error is ± {error} %.",
  adviceSure: "If {expected} of {invited} people answer, as you expect, the minimum is reached.",
  adviceChance:
    "If {expected} of {invited} people answer on average, as you expect, the minimum of {minimum} " +
    "is reached with a chance of {chance} %.",
  adviceTooFew:
    "You expect {expected} answers, but at least {minimum} are needed. Invite more people, or set " +
    "a lower minimum.",
  adviceAllowance:
    "Participants make the noise here, so a lower minimum makes the result less accurate.",
  adviceProven:
    "Every response is proven to be exactly one vote, so a manipulated program cannot count for " +
    "more.",
  adviceUnproven:
    "Responses are not proven to be one vote: a manipulated program could change any count.",
  adviceCondition: "The promise holds on this condition: {condition}.",
  adviceNot:
    "This survey would tell you nothing: the error is larger than the average share of an " +
    "answer. Invite more people, offer fewer answers, or allow a larger epsilon.",
  adviceWeak:
    "Participants will be warned that this is hardly any protection. Choose a smaller epsilon or " +
    "delta: 1 and 0.000001 are common.",
  participantsTitle: "What participants will read",
  adviceAnyway: "Create it anyway; I have read what speaks against it.",
  adviceExample: "If all answers were equally frequent, the result could look like this:",
  adviceBar: "{share} %, from {low} to {high} %",
  budgetKnown:
    "This group already has a budget: epsilon {epsilon} in total, {spent} spent, {left} left. It " +
    "stays valid, whatever you enter here.",

  // one survey
  detailsTitle: "Technical details: servers, keys, mechanism",
  surveyServers:
    "The coordinator (S1) is run by {s1} (key {s1Key}), the aggregator (S2) by {s2} (key {s2Key}).",
  surveyOneOperator:
    "One operator runs both servers and could combine the shares, so this is a trial.",
  surveyPlanned: "Mechanism {mechanism}; planned: epsilon {epsilon}, delta {delta}.",
  tooFew:
    "At this pace only {expected} people will have answered by the closing time, but {minimum} " +
    "are needed. Send a reminder, or extend the survey.",
  coordinatorAway:
    "The coordinator cannot be reached right now, so what you see may be out of date. Nothing is " +
    "lost, and this page keeps trying.",
  coordinatorSilent:
    "The coordinator does not tell the status of this survey right now. This page keeps trying.",
  surveyDeleted: "This survey was deleted from both servers. Its result is kept in this folder.",
  labelTitle: "What you promise",
  labelText:
    "The privacy label says on one page what this survey promises and what it does not, for " +
    "example for your intranet; the other files say the same to programs. All numbers are " +
    "computed again when you download it.",
  labelPage: "Privacy label (HTML)",
  labelJson: "Label for programs (JSON)",
  labelYaml: "Label for programs (YAML)",
  moreTitle: "More",
  moreRepeat:
    "You can ask the same people the same again, from the same privacy budget, or begin a " +
    "new survey as a copy of this one.",
  moreCopy: "You can begin a new survey as a copy of this one.",
  repeat: "Ask the same people again",
  copy: "Copy as a new survey",
  delete: "Delete from both servers",
  deleteSure:
    "Delete this survey from both servers? Participants can then no longer check whether they were " +
    "counted. What was spent of the privacy budget stays spent, and this folder keeps the result.",
  deleteYes: "Yes, delete it",
  open: "Open the survey",
  close: "Close now",
  closeSure: "Close now? Nobody can answer after that.",
  closeYes: "Yes, close it",
  extend: "Extend by one day",
  abort: "End without a result",
  abortSure: "End the survey without a result? This cannot be undone.",
  abortYes: "Yes, end it",

  // progress
  progressTitle: "Progress",
  phasesLabel: "Phases of the survey",
  phaseNow: "now",
  phaseLast: "last known",
  phaseDraft: "Prepared",
  phase_draft: "Not open yet",
  phase_enrolling: "People sign up",
  phase_confirmed: "The list of participants is confirmed",
  phase_indicating: "People say which answers they report",
  phase_sharing: "Participants exchange shares",
  phase_submitting: "People answer",
  phase_counting: "Both servers count",
  phase_unmasking: "Participants help to remove the masks of those who left",
  phase_aggregated: "The result is computed",
  phase_published: "Result published",
  phase_aborted: "Ended without a result",
  answersLabel: "Answers so far",
  answers: "{responses} of {invited} people have answered",
  lastKnown:
    "When the coordinator was last reached, on {when}: {phase}; {responses} of {invited} people had " +
    "answered.",
  lastNothing: "Nothing is known yet: the coordinator was never reached from this folder.",
  answersMissing: "At least {minimum} are needed (the mark on the bar): {missing} to go.",
  answersEnough: "The minimum of {minimum} (the mark on the bar) is reached.",
  answersWithdrawn: "Withdrawn and not counted: {withdrawn}.",
  waitsTitle: "What happens next",
  waits_nobody: "Nothing: the survey is over.",
  waits_owner: "The survey is ready. Open it, and people can answer.",
  waits_people:
    "People can answer until {closes}. Then the coordinator closes the survey and counts " +
    "together with the aggregator. You can also close it earlier.",
  waits_held:
    "There were too few answers at the closing time, so the survey stays open. Remind people, or " +
    "extend it. You can close it as soon as the minimum is reached. On {closes} it ends by " +
    "itself, without a result if there are still too few answers.",
  waits_peopleOpen:
    "People can answer until you close the survey. Then the coordinator counts together with the " +
    "aggregator.",
  waits_coordinator:
    "The coordinator is about to contact the aggregator. You don't have to do anything.",
  waits_aggregator:
    "The coordinator has been waiting for the aggregator since {since}. Neither of them can " +
    "publish a result or end the survey alone. Nothing is lost, and you don't have to do anything; " +
    "if it lasts, tell the operator of the aggregator.",
  waitsDetails: "Details for the operators of the servers",
  waitsAgain: "Attempts so far: {tries}. The next one is on {when}.",
  waitsProblem: "The coordinator says why the aggregator has not responded yet:",
  aggregatorAsked: "Asking the aggregator for its status …",
  aggregatorAway_people:
    "The aggregator cannot be reached right now. People can answer nevertheless: it is needed when " +
    "the answers are counted.",
  aggregatorAway_owner:
    "The aggregator cannot be reached right now. You can open the survey nevertheless: it is needed " +
    "when the answers are counted.",
  aggregatorSilent: "The aggregator does not tell its status right now:",
  aggregator_waiting: "The aggregator knows who is invited and is waiting for the coordinator.",
  aggregator_list:
    "The aggregator has confirmed the list of participants and is waiting for the coordinator.",
  aggregator_counting:
    "The aggregator has reserved the privacy budget and is decrypting its shares of the answers.",
  aggregator_published: "The aggregator has signed the result.",
  aggregator_aborted: "The aggregator has signed that there is no result.",
  refusedNone: "No message was rejected.",
  refusedCaption: "Rejected messages, by reason",
  refusedReason: "Reason",
  refusedCoordinator: "Coordinator",
  refusedAggregator: "Aggregator",
  reason_malformed: "Unreadable",
  reason_conflict: "The same device sent something else before",
  reason_unknown: "Unknown invitation",
  reason_unsigned: "Wrong signature or authentication code",
  reason_late: "Too late",
  reason_early: "Too early",
  reason_full: "The survey is full",
  reason_wrong_digest: "Made for another survey",
  reason_too_few: "Too few people",
  reason_too_many_attempts: "Too many attempts",
  reason_disconnected: "The remaining people cannot hide each other",
  reason_wrong_shares: "Shares that do not match the coordinator's list",
  reason_closed: "The survey or its budget is closed",
  reason_invitation_used: "Another device has used the invitation",
  reason_invitation_replaced: "The invitation was exchanged",

  // result
  resultTitle: "Result",
  resultCaption: "Estimated shares among the {included} people who were counted",
  resultItem: "Answer",
  resultShare: "Estimate",
  resultRange: "95 % interval",
  resultConsistentHead: "Consistent",
  resultText:
    "Bar: the estimate, which is right on average but can be below 0. Line: its interval, " +
    "which contains the true share among the people counted in 95 of 100 such surveys.",
  resultAnswered: "Estimated shares among those who answered",
  resultSide: "Estimated shares of the answers to: {text}",
  resultMeasure: "Estimated for the {included} people who were counted",
  gridCaption:
    "{rows} (rows) and {columns} (columns): estimated shares among the {included} people counted",
  gridAll: "All",
  resultTextSeveral:
    "Bar, or mark on a range: the estimate, which is right on average, but may lie outside of what " +
    "is possible. Line: its interval; in 95 of 100 such surveys it contains the true number among " +
    "the people counted.",
  resultNearest:
    "Tall mark, and the column “Consistent”: the nearest number that can be true. Shares are never " +
    "negative, and where everybody gives exactly one answer they add up to 100 %; small ones are " +
    "estimated too large, and large ones too small.",
  resultProvenSheet:
    "Responses counted: {counted}, each proven to be one sheet of possible answers. Rejected: " +
    "{refused}.",
  resultProven:
    "Responses counted: {counted}, each proven to be exactly one vote. Rejected: {refused}.",
  resultConsistent:
    "Tall mark: the consistent share. These shares are never negative and add up to 100 %, but " +
    "small ones are estimated too large and large ones too small.",
  trendTitle: "Changes since {before}",
  trendCaption: "Among the same people, in percentage points",
  trendCaptionMean: "Among the same people, change of the mean or the median",
  trendChange: "Change",
  trendRange: "{low} to {high}",
  trendMeaning: "Meaning",
  trendClear: "changed",
  trendNoise: "may be noise",
  resultNone: "The survey ended without a result. The reason:",
  ending_owner: "The owner of the survey ended it.",
  ending_too_few_responses: "Too few people answered: {responses} did, and {minimum} are needed.",
  ending_too_few_enrolled: "Too few people signed up: {enrolled} did, and {minimum} are needed.",
  ending_too_few_left: "Too few people stayed until the end: {left} did, and {minimum} are needed.",
  ending_too_few_readable:
    "Too few answers could be decrypted and added up: {readable} could, and {minimum} are needed.",
  ending_over_budget: "The privacy budget of this group is not large enough for this survey.",
  ending_aggregator_restored:
    "The aggregator (S2) was restored from a backup while the survey was running.",
  ending_coordinator_restored:
    "The coordinator (S1) was restored from a backup while the survey was running, and could not " +
    "continue.",
  ending_reports_lost:
    "Answers were damaged or lost after it had been decided which ones are counted.",
  ending_attempts_used: "Participants were missing in every one of {attempts} attempts to count.",
  ending_key_lost: "The key of a participant who dropped out could not be recovered.",
  ending_no_substitute: "Nobody was left to replace a participant who dropped out.",
  ending_not_invited: "None of the people who signed up had been invited.",
  ending_corrupt_sum: "The sum was outside the range that honest answers can give.",
  ending_aggregator_refused: "The aggregator (S2) refused the list of answers (reason {reason}).",
  ending_aggregator_contradiction:
    "The coordinator (S1) reports that the aggregator (S2) contradicted itself.",
  ending_coordinator_contradiction:
    "The aggregator (S2) found that the coordinator (S1) contradicted itself.",
  ending_aggregator_secret_lost: "The aggregator (S2) has lost a secret value to which it had committed.",
  ending_operator: "The operator of one of the servers stopped the survey.",
  ending_unknown: "The servers gave a reason that this page does not know.",
  resultSpent:
    "Its privacy budget is spent all the same, because the aggregator had already received its " +
    "shares of the answers.",
  resultNotSpent: "No privacy budget was spent.",
  resultAgain:
    "Every further survey among the same people spends privacy budget again, because what they " +
    "reveal adds up.",
  guaranteeTitle: "Privacy guarantee",
  guaranteeCaption: "Planned before the survey, and achieved with the people who were counted",
  guaranteeWhen: "Guarantee",
  guaranteeDetails: "Details of the guarantee: epsilon, delta, conditions",
  guaranteePlanned: "Planned",
  guaranteeKept: "Achieved",
  promise:
    "Imagine somebody who thinks that two answers of a person are equally likely. Even after " +
    "seeing the result, they can be at most {sure} % sure which one it is.",
  promiseSeveral:
    "Suppose that somebody thinks two ways to answer all questions are equally likely to be a " +
    "person's. Even knowing the results, they can be at most {sure} % sure which one it is. This " +
    "covers all answers of the person together.",
  promiseSingle: "About a single answer, they can be at most {sure} % sure.",
  guaranteeOneOperator:
    "One operator ran both servers and could have read every answer: this was a trial. The " +
    "guarantee holds against everybody else.",
  guaranteeNoOperator:
    "Nobody is named as operator of the servers, so one may have run both and could have read every " +
    "answer: this was a trial. The guarantee holds against everybody else.",
  guaranteeExact:
    "Exactly: ({epsilon}, {delta})-differential privacy for replacing one person's answer. " +
    "Against: {against}. Condition: {condition}.",
  against_reader: "anybody who reads the result",
  against_participants: "up to {insiders} participants who pool what they know and read the result",
  against_s1: "the coordinator (S1), which reads the result",
  against_s2: "the aggregator (S2), which reads the result",
  against_s1_participants: "the coordinator (S1), together with any number of participants",
  against_s2_participants: "the aggregator (S2), together with any number of participants",
  against_group_insiders: "participants of each group who pool what they know and read the result",
  against_collector: "anybody who sees a participant's own report",
  void_seeded: "No guarantee holds: the randomness was seeded, so anybody can repeat it.",
  condition_always: "none, it holds whatever people answer",
  condition_floor:
    "every answer is chosen by at least {floor} other people (of whom {insiders} may collude and " +
    "{dropouts} may drop out)",
  condition_nobody_left_out:
    "the coordinator (S1) leaves nobody out because of the answers that they report",
  condition_no_helper_looks: "no helping participant looks at what it receives",
  condition_s1_noise: "the coordinator (S1) adds its noise and keeps it secret",
  condition_s2_noise: "the aggregator (S2) adds its noise and keeps it secret",
  condition_one_operator: "nobody who runs both servers combines their shares",
  condition_either_noise:
    "the coordinator (S1) or the aggregator (S2) adds its noise and keeps it secret",
  condition_public_groups: "it is public which group a participant is in",
  condition_public_groups_by: "it is public which group a participant is in (column {column})",
  condition_one_group: "nobody takes part in two of the groups",
  condition_public_items: "the list of answers is public",
  condition_public_missing: "it is public who has no answer",
  condition_public_outside: "it is public who has an answer outside the list",
  condition_rows_are_people: "each row is another person",
  condition_other: "{text}",
  downloadTitle: "Downloads",
  downloadText:
    "Every file names the survey and the guarantee. Pictures, XLSX and HTML are in the language " +
    "of the survey; CSV and JSON are for programs, in English.",

  // budget
  budgetTitle: "Privacy budget",
  budgetShared: "Group: {population}. All surveys among these people share one budget.",
  budgetOwn: "This survey has its own budget.",
  budgetSpent: "Spent: epsilon {spent} of {epsilon}, delta {spentDelta} of {delta}",
  budgetCaption: "What each survey spent, oldest first; the frame ends at the whole budget",
  budgetAfter: "Total spent",
  budgetStatus: "Status",
  budgetUntouched: "Nothing is spent yet: that happens when the answers are counted.",
  budgetTogether:
    "Together they cost less than the sum, because they were declared to be independent of each " +
    "other.",
  budgetElsewhere: "{id}, not in this folder",
  budgetClosed:
    "The aggregator was restored from a backup. Its operator must present the reservations made " +
    "since then before this group can be asked again.",
  charge_reserved: "Reserved",
  charge_spent: "Spent",
  charge_cancelled: "Cancelled",

  // invitations
  invitationsTitle: "Invitations",
  invitationsText:
    "For {people} people. Anybody who has an invitation can answer in that person's place, so " +
    "keep these files secret.",
  invitationsTable: "Table of invitations (CSV)",
  invitationsPrint: "Print version with QR codes",
  invitationsRemind: "People who have not answered yet (CSV)",
  invitationsNone: "There are no invitations yet.",
  invitationsInterrupted:
    "A server could not be reached while the invitations were made, so nobody can answer yet. " +
    "Continue: the same invitations are used.",
  invitationsMake: "Create the invitations",
  invitationOne: "Show one invitation",
  invitationWho: "Person",
  invitationChoose: "Choose a person",
  invitationQr: "QR code with the link of {person}",
  invitationLink: "Scan it with a phone, or open this link:",
  invitationCode: "Or paste this code on the page:",
  invitationSecret: "It works once, and only for this person.",
  reissue: "Replace a lost invitation",
  reissueSure:
    "Replace this invitation? The old one admits nobody from then on. If it was used already, it " +
    "cannot be replaced.",
  reissueYes: "Yes, replace it",
  reissued: "This is the new invitation; the old one admits nobody any more.",

  // mail
  mailTitle: "Mail",
  mailServer: "Mails go through {host}, at a slow pace. Nobody gets the same mail twice.",
  mailNoServer:
    "To send mails from here, name your mail server in FAIRCOUNT_SMTP_HOST and start the dashboard " +
    "again. Until then you can look at the mails, and send them with another program.",
  mailNoAddresses:
    "These people have no e-mail addresses. Print the invitations, or create a survey with a table " +
    "of people.",
  mailNotYet: "Open the survey before you send mails: until then the links do not work.",
  mailAway: "No mails can be sent while the coordinator cannot tell who has answered.",
  mailBefore: "Sent before: invitations: {invitation}, reminders: {reminder}.",
  mailSender: "Sender",
  mailPreview: "Look at the mails first",
  mailInvite: "Send invitations",
  mailInviteSure:
    "Send invitations from {sender} through {host}? {count} people are invited; those who have " +
    "theirs get no second one.",
  mailInviteYes: "Yes, send invitations",
  mailRemind: "Remind those who have not answered",
  mailRemindSure:
    "Send reminders from {sender} through {host}? {count} people have not answered yet.",
  mailRemindYes: "Yes, remind them",
  mailAgain: "Remind them again now",
  mailWritten:
    "{files} mails are in {folder}, and none was sent. Keep them secret: a link lets anybody answer.",
  mailNobody: "Everybody has answered: there is no mail to write.",
  mailFirst: "The first mail, to {to}",
  mailRunning: "Sending: {sent} of {due}",
  mailStop: "Stop sending",
  mailDone: "Sent: {sent}",
  mailEnded: "Sent before it stopped: {sent} of {due}. Send again to continue.",
  mailRefused: "The mail server refused the address of: {people}",
  mailPostponed: "Not sent for now; send again later: {people}",
  mailUnsure:
    "A program stopped while the mail server had these mails, so these people may have got " +
    "theirs: {people}",
  mailRetry: "Send to them again",
};

const de = {
  language: "Deutsch",
  direction: "ltr",
  title: "faircount: Ihre Umfragen",
  chooseLanguage: "Sprache",
  loading: "Wird geladen …",
  back: "Zurück",
  no: "Nein",
  toList: "Ihre Umfragen",
  percent: "{value} %",
  range: "{low} bis {high} %",
  epsilon: "Epsilon",
  delta: "Delta",
  coordinator: "Koordinator (S1)",
  aggregator: "Aggregator (S2)",
  noOperator: "ein ungenannter Betreiber",
  problemTitle: "Das hat nicht funktioniert",

  problem_notRunning:
    "Das Programm hinter dieser Seite antwortet nicht. Läuft faircount dashboard noch?",
  problem_stranger: "Bitte öffnen Sie die Adresse, die faircount dashboard ausgegeben hat.",
  problem_too_few_items: "Schreiben Sie mindestens zwei Antworten, eine pro Zeile.",
  problemQuestion: "Frage {question}:",
  problem_two_items:
    "Schreiben Sie genau zwei Antworten. Bei mehreren wählen Sie „eine von mehreren“.",
  problem_too_few_rows: "Schreiben Sie mindestens zwei Zeilen der Tabelle, jede für sich.",
  problem_too_few_columns: "Schreiben Sie mindestens zwei Spalten, eine pro Zeile.",
  problem_reserved_item:
    "„{item}“ kann keine der Antworten sein. Setzen Sie das Häkchen für „keine Angabe“, oder " +
    "wählen Sie, wer gefragt wird.",
  problem_most_range:
    "Wie viele man wählen darf: Bitte geben Sie eine ganze Zahl von 1 bis {largest} ein.",
  problem_number_range: "Die größte Zahl muss über der kleinsten liegen.",
  problem_number_step:
    "Die Schrittweite muss über 0 liegen und den Bereich teilen, etwa 0 bis 40 in Schritten von " +
    "0,5.",
  problem_number_steps: "Das sind mehr als {most} Schritte. Wählen Sie eine größere Schrittweite.",
  problem_bands: "Schreiben Sie mindestens drei Grenzen, eine pro Zeile, jede über der vorigen.",
  problem_branch_question:
    "Sie hängt von einer Frage ab, die später kommt oder nicht genau eine Antwort hat. Schieben " +
    "Sie jene nach oben, oder fragen Sie alle.",
  problem_branch_items:
    "Setzen Sie Häkchen bei den Antworten auf Frage {earlier}, mit denen diese gestellt wird.",
  problem_text_too_long: "Fragen und Antworten haben höchstens {most} Zeichen.",
  problem_one_question_only:
    "Dieses Verfahren ist für eine Frage mit genau einer Antwort. Überlassen Sie die Wahl dem " +
    "Planer.",
  problem_too_many_questions: "Eine Umfrage hat höchstens {most} Fragen.",
  about_translations:
    "Die Texte in anderen Sprachen passen nicht mehr zu den Fragen. Entfernen Sie die anderen " +
    "Sprachen, oder berichtigen Sie die Datei und laden sie noch einmal. Das Programm sagt:",
  about_questions_unusable: "So lassen sich diese Fragen nicht stellen. Das Programm sagt:",
  about_questions_file:
    "{file} lässt sich nicht verwenden. Berichtigen Sie die Datei, und laden Sie sie noch einmal. " +
    "Das Programm sagt:",
  problem_not_a_number: "{field}: Bitte geben Sie eine Zahl ein.",
  problem_not_whole: "{field}: Bitte geben Sie eine ganze Zahl über 0 ein.",
  problem_not_above_zero: "{field}: Bitte geben Sie eine Zahl über 0 ein.",
  problem_not_inside: "{field}: Bitte geben Sie eine Zahl über 0 und unter 1 ein.",
  problem_minimum_form:
    "Mindestzahl der Antworten: Bitte geben Sie eine Zahl wie 100 oder einen Anteil wie 40% ein.",
  problem_response_rate_form:
    "Erwartete Rücklaufquote: Bitte geben Sie eine Zahl über 0 und bis 100 ein.",
  problem_expects_too_few:
    "Sie erwarten {expected} Antworten, aber mindestens {minimum} sind nötig. Laden Sie mehr " +
    "Personen ein, oder wählen Sie eine kleinere Mindestzahl.",
  problem_closing_time_form: "Bitte geben Sie Datum und Uhrzeit an, zu denen die Umfrage endet.",
  problem_closing_time_passed:
    "Das Ende der Umfrage ist schon vorbei oder mehr als ein Jahr entfernt. Wählen Sie ein anderes; " +
    "eine Umfrage, die noch nicht offen ist, lässt sich als neue kopieren.",
  problem_minimum_range: "Die Mindestzahl der Antworten muss zwischen {fewest} und {invited} liegen.",
  problem_people: "Laden Sie zwischen {fewest} und {most} Personen ein.",
  problem_bad_name:
    "Verwenden Sie im Namen einer Umfrage nur Buchstaben, Ziffern, - und _, höchstens 60 Zeichen.",
  problem_too_many_invited:
    "Die Umfrage wurde für {planned} Personen geplant, aber die Liste hat {invited}.",
  problem_too_few_invited:
    "Die Liste hat {invited} Personen, aber {minimum} müssen antworten. Laden Sie mehr Personen " +
    "ein oder planen Sie eine Umfrage für weniger.",
  problem_person_twice: "Die Liste nennt jemanden zweimal. Schreiben Sie eine Zeile pro Person.",
  problem_sheet_format: "{file} ist nicht lesbar. Speichern Sie die Tabelle als .xlsx oder CSV.",
  problem_sheet_no_columns: "{file} hat keine Spalten. Wählen Sie eine Tabelle (.csv oder .xlsx).",
  problem_sheet_csv:
    "{file} ist nicht als CSV lesbar. Fehlt ein Anführungszeichen am Ende einer Zelle?",
  problem_sheet_encoding:
    "{file} ist kein Text. Speichern Sie die Tabelle als CSV UTF-8, oder wählen Sie die " +
    ".xlsx-Datei.",
  problem_sheet_unreadable:
    "{file} ist nicht als Tabelle lesbar. Speichern Sie sie noch einmal, oder als CSV.",
  problem_sheet_too_large: "{file} ist zu groß. Wählen Sie eine Tabelle mit einer Zeile pro Person.",
  problem_sheet_empty: "{file} ist leer. Die erste Zeile muss die Spalten benennen.",
  problem_sheet_no_people: "{file} benennt Spalten, hat aber keine Personen darunter.",
  problem_sheet_no_header:
    "In der ersten Zeile von {file} steht eine E-Mail-Adresse. Setzen Sie eine Zeile darüber, die " +
    "die Spalten benennt.",
  problem_sheet_no_title:
    "Spalte {column} von {file} hat keinen Namen. Benennen Sie sie in der ersten Zeile.",
  problem_sheet_title_twice:
    "{file} hat mehrere Spalten mit dem Namen {title}. Benennen Sie alle bis auf eine um.",
  problem_sheet_cells:
    "Zeile {line} von {file} hat mehr Zellen als die erste, die {columns} hat. Setzen Sie eine " +
    "Zelle, die das Trennzeichen enthält, in Anführungszeichen.",
  problem_sheet_no_column: "Die Tabelle hat keine Spalte {column}. Wählen Sie eine andere.",
  problem_sheet_which_column:
    "Wählen Sie die Spalte, die Personen unterscheidet. Möglich sind: {columns}.",
  problem_sheet_address_missing:
    "Bei manchen Personen ist die Spalte {title} leer (Zeilen {lines}). Füllen Sie sie aus, oder " +
    "entfernen Sie diese Personen.",
  problem_sheet_address_broken:
    "In der Spalte {title} steht etwas, das keine E-Mail-Adresse ist (Zeilen {lines}). " +
    "Berichtigen Sie es.",
  problem_sheet_person_twice:
    "Jemand steht zweimal in der Tabelle (Zeilen {first} und {second}). Schreiben Sie eine Zeile " +
    "pro Person.",
  problem_no_xlsx:
    "Für XLSX fehlt ein Paket. Installieren Sie es (pip install 'faircount[xlsx]'), oder " +
    "verwenden Sie CSV.",
  problem_mail_security: "Die Sicherheit des Mailservers ist eine von: {names}.",
  problem_mail_account:
    "Geben Sie für den Mailserver Benutzer und Passwort an, oder keines von beiden.",
  problem_mail_plain_password:
    "Das Passwort würde unverschlüsselt an {host} gesendet. Wählen Sie starttls oder tls.",
  problem_mail_login: "{host} lehnt den Benutzer oder das Passwort zum Senden ab.",
  problem_mail_plain_only:
    "{host} bietet auf Port {port} kein STARTTLS an. Wenn dort sofort TLS erwartet wird, meist auf " +
    "Port 465, starten Sie das Dashboard mit FAIRCOUNT_SMTP_SECURITY=tls; wenn es ein Relay ohne " +
    "Verschlüsselung in Ihrem eigenen Netz ist, mit FAIRCOUNT_SMTP_SECURITY=none.",
  about_mail_away: "Über {host} kann gerade keine Mail gesendet werden. Genauer (englisch):",
  problem_mail_sender: "Mails brauchen einen Absender wie name@example.org.",
  problem_mail_over: "Diese Umfrage ist geschlossen: Niemand kann mehr antworten.",
  problem_nobody_invited:
    "Zu dieser Umfrage ist noch niemand eingeladen. Machen Sie zuerst die Einladungen: faircount " +
    "survey invite.",
  problem_inviting_interrupted:
    "Der Koordinator kennt keine solche Umfrage von Ihnen: Das Einladen wurde unterbrochen, oder " +
    "die Umfrage wurde gelöscht oder abgegeben. Nach einer Unterbrechung erstellen Sie die " +
    "Einladungen noch einmal.",
  problem_mail_not_open:
    "Diese Umfrage ist noch nicht geöffnet, die Links würden nicht gelten. Öffnen Sie sie zuerst.",
  problem_no_addresses:
    "Manche Personen haben keine E-Mail-Adresse. Legen Sie die Umfrage mit einer Tabelle der " +
    "Personen an.",
  problem_reminded_lately: "Die letzte Erinnerung ist weniger als einen Tag her.",
  problem_mail_rate: "FAIRCOUNT_MAIL_RATE ist eine Zahl von Mails pro Minute über 0.",
  about_mail_stopped:
    "Nach {sent} Mails hielt das Senden an. Senden Sie noch einmal, um fortzufahren. Der Grund " +
    "(englisch):",
  problem_mail_running:
    "Mails dieser Umfrage werden gerade gesendet. Warten Sie, bis das fertig ist, oder halten Sie " +
    "es an.",
  problem_mail_no_server:
    "Es ist kein Mailserver eingestellt. Nennen Sie ihn in FAIRCOUNT_SMTP_HOST, und starten Sie " +
    "das Dashboard neu.",
  problem_label_refused:
    "Ein Versprechen dieser Umfrage stimmt nicht, wenn es neu berechnet wird, daher bekommt sie " +
    "keinen Steckbrief. Fragen Sie beide Betreiber.",
  problem_no_question: "Schreiben Sie die Frage, die gestellt wird.",
  problem_empty_item: "Eine der Antworten ist leer.",
  problem_same_items:
    "Niemand könnte die Antworten „{first}“ und „{second}“ auseinanderhalten.",
  problem_budget_too_small: "Ein Budget mit Epsilon {total} reicht für diese Umfrage nicht.",
  problem_budget_differs:
    "Diese Personengruppe hat schon ein Budget mit Epsilon {total}; es wird nie geändert.",
  problem_one_address: "Die Datei beider Server nennt für beide dieselbe Adresse.",
  problem_servers_interchanged:
    "Koordinator (S1) und Aggregator (S2) sind in der Datei beider Server vertauscht.",
  problem_survey_exists: "Sie haben schon eine Umfrage mit diesem Namen. Wählen Sie einen anderen.",
  problem_not_worthwhile:
    "Diese Umfrage würde nichts aussagen: Der Fehler ist größer als der durchschnittliche Anteil " +
    "einer Antwort. Laden Sie mehr Personen ein, bieten Sie weniger Antworten an oder erlauben " +
    "Sie ein größeres Epsilon.",
  problem_too_many_of_name: "Es gibt zu viele Umfragen mit diesem Namen.",
  problem_budget_spent:
    "Das Privatheitsbudget dieser Gruppe erlaubt keine weitere Umfrage mit Epsilon {epsilon}: " +
    "{spent} von {total} ist ausgegeben. Fragen Sie andere Personen, oder wählen Sie ein " +
    "kleineres Epsilon.",
  problem_unsigned_result:
    "Der Koordinator (S1) zeigt ein Ergebnis, das der Aggregator (S2) für diese Umfrage nicht " +
    "unterschrieben hat. Verwenden Sie es nicht und fragen Sie beide Betreiber.",
  problem_operator_differs:
    "Der Server {server} nennt einen anderen Betreiber, als Sie erwarten. Prüfen Sie die Datei " +
    "mit den Servern.",
  problem_no_result: "Diese Umfrage endete ohne Ergebnis.",
  problem_unknown_mechanism: "Dieses Verfahren gibt es nicht. Wählen Sie eines von: {names}.",
  problem_other_version:
    "{file} wurde von einer anderen Version von faircount geschrieben. Verwenden Sie diese " +
    "Version.",
  problem_file_damaged:
    "{file} ist beschädigt oder wurde geändert. Stellen Sie die Datei aus einer Kopie wieder her.",
  problem_servers_file: "{file} muss JSON mit Adresse und Token beider Server sein.",
  problem_not_installed:
    "Ein Teil von faircount fehlt. Installieren Sie ihn: pip install 'faircount[service]'",
  problem_unknown_language: "Einladungen können in diesen Sprachen gedruckt werden: {names}.",
  problem_exchange_damaged:
    "{file} ist beschädigt. Sehen Sie in invitations.csv nach und löschen Sie dann die Datei.",
  problem_nobody_of_this_name:
    "Niemand mit diesem Namen ist eingeladen. Schreiben Sie den Namen wie in invitations.csv.",
  problem_no_group_column: "Die Tabelle der Personen hat keine Spalte {column}.",
  problem_people_without_group:
    "Bei {people} Personen fehlt {column}: Tragen Sie es in die Tabelle ein, oder lassen Sie diese " +
    "Personen weg.",
  problem_group_of_one:
    "Die Gruppe {group} hat eine Person, deren Antwort ihr Ergebnis wäre: Legen Sie sie mit einer " +
    "anderen zusammen.",
  problem_groups_too_small:
    "Einige Gruppen sind zu klein, um etwas zu zeigen: Legen Sie sie mit anderen zusammen, fragen " +
    "Sie weniger, oder erlauben Sie ein größeres Epsilon.",
  problem_several_groups:
    "Dieser Ordner enthält die Umfragen mehrerer Gruppen: Öffnen Sie die Umfrage einer Gruppe.",
  problem_others_invited:
    "Zu dieser Umfrage sind schon andere eingeladen, und deren Einladungen können unterwegs " +
    "sein. Legen Sie für diese Personen eine weitere Umfrage an.",
  problem_not_faircount:
    "Die Antwort des Servers ist nicht lesbar. Ist das die Adresse eines faircount-Servers?",
  problem_certificates: "{file} enthält keine Zertifikate im PEM-Format.",
  problem_bad_call:
    "Diese Seite und ihr Programm passen nicht zusammen. Bitte laden Sie die Seite neu.",
  problem_unknown_file: "Ein Ergebnis kann so gespeichert werden: {names}.",
  problem_no_such_invitation: "Diese Einladung gibt es nicht; es gibt {invited}.",
  about_no_mechanism:
    "Kein Verfahren kann dieses Versprechen halten. Erlauben Sie ein größeres Epsilon oder " +
    "Delta, oder laden Sie mehr Personen ein. Der Planer sagt (englisch):",
  problem_unreachable:
    "{address} ({server}) ist gerade nicht erreichbar. Nichts ist verloren: Bitte versuchen Sie es " +
    "später noch einmal, und sagen Sie es dem Betreiber, wenn es anhält.",
  about_remote: "Der {server} hat das abgelehnt und sagt (englisch):",
  remote: "Der {server} hat das abgelehnt:",
  remote_list_fixed:
    "Die Umfrage hat begonnen, daher kann die Liste der Personen nicht mehr geändert werden.",
  remote_people_missing:
    "Dort sind nur {known} von {people} Personen bekannt. Erstellen Sie die Einladungen noch " +
    "einmal, damit auch die anderen bekannt werden.",
  remote_too_many_people:
    "Die Umfrage hat Platz für {most} Einladungen, und mit diesen wären es {people}.",
  remote_too_few_people:
    "Dort sind {known} Personen bekannt, aber {minimum} sind nötig. Laden Sie mehr Personen ein.",
  remote_no_closing_time:
    "Diese Phase hat kein Ende, das sich verschieben ließe. Schließen Sie sie, wenn es so weit " +
    "ist.",
  remote_not_open: "Die Umfrage ist noch nicht geöffnet.",
  remote_too_few_answers:
    "Es gibt {answers} Antworten, und {minimum} sind nötig. Die Umfrage bleibt offen: Verlängern " +
    "Sie sie, oder beenden Sie sie ohne Ergebnis.",
  remote_survey_over: "Die Umfrage ist zu Ende, daher kann nichts mehr an ihr geändert werden.",
  remote_survey_running: "Die Umfrage läuft. Beenden Sie sie, bevor Sie sie löschen.",
  remote_other_survey: "Dort gibt es schon eine andere Umfrage mit derselben Nummer.",
  remote_other_budget:
    "Diese Personengruppe hat schon ein anderes Privatheitsbudget, und ein Budget wird nie " +
    "erhöht.",
  remote_no_population: "Diese Personengruppe hat dort noch kein Privatheitsbudget.",
  remote_other_operator:
    "Sein Betreiber hat einen anderen Namen oder Schlüssel, als diese Umfrage sagt. Legen Sie " +
    "die Umfrage neu an.",
  remote_operator_unsigned:
    "Der Betreiber des Aggregators (S2) hat diese Umfrage nicht unterschrieben. Laden Sie die " +
    "Personen noch einmal ein.",
  remote_no_survey_keys:
    "Dieser Server hat die Schlüssel dieser Umfrage nicht für Sie erzeugt. Legen Sie die Umfrage " +
    "neu an.",
  remote_no_token: "Das Zugangstoken gilt dort nicht. Bitten Sie den Betreiber um ein neues.",
  remote_forbidden:
    "Das Zugangstoken gehört zu einer anderen Rolle. Verwenden Sie das für Umfragen.",
  remote_unknown: "Das gibt es dort nicht, oder es gehört jemand anderem.",
  remote_early: "Die Umfrage ist noch nicht zu Ende.",
  remote_too_many_requests: "Es waren zu viele Anfragen. Bitte warten Sie einen Moment.",
  remote_internal:
    "Auf dem Server ist ein Fehler aufgetreten. Nichts wurde geändert; bitte melden Sie es dem " +
    "Betreiber.",

  listTitle: "Ihre Umfragen",
  listCaption: "Umfragen in diesem Ordner",
  listEmpty: "In diesem Ordner ist noch keine Umfrage.",
  listEmptyNext:
    "Beginnen Sie mit einer Frage: Während Sie schreiben, zeigt der Planer, wie genau das " +
    "Ergebnis wird.",
  listName: "Umfrage",
  listAnswers: "{responses} von {invited} haben geantwortet",
  listQuestions: "{count} Fragen",
  listTooFew:
    "{name}: Wenn es so weitergeht, haben bis zum Ende nur {expected} Personen geantwortet, aber " +
    "{minimum} sind nötig.",
  newSurvey: "Neue Umfrage",
  stateUnknown: "Gerade nicht bekannt",
  stateLast: "Zuletzt bekannt: {phase}",
  stateDeleted: "Auf beiden Servern gelöscht",
  stateNotInvited: "Noch niemand eingeladen",

  groupQuestion: "Was Sie fragen",
  groupOwner: "Über Sie",
  groupPeople: "Wen Sie fragen",
  groupPrivacy: "Privatheit",
  groupBudget: "Dieselben Personen noch einmal fragen",
  groupName: "Name der Umfrage",
  field_question: "Frage",
  field_items: "Mögliche Antworten",
  hint_items: "Eine pro Zeile.",
  field_title: "Titel der Umfrage (freiwillig)",
  field_kind: "Art",
  kind_one: "Eine von mehreren Antworten",
  kind_yes: "Ja oder nein",
  kind_any: "Beliebig viele Antworten",
  kind_most: "Höchstens so viele Antworten",
  kind_scale: "Skala (Anteil jeder Antwort)",
  kind_mean: "Skala (nur Mittelwert, genauer)",
  kind_number: "Zahl im Bereich (Mittelwert)",
  kind_bands: "Zahl in Klassen (Median)",
  kind_table: "Tabelle aus zwei Fragen",
  yesItems: "Nein\nJa",
  field_most: "Wie viele davon man wählen darf",
  hint_most: "Weniger, als es Antworten gibt.",
  field_low: "Kleinste Zahl",
  field_high: "Größte Zahl",
  field_step: "Schrittweite (freiwillig)",
  hint_step: "1, wenn Sie nichts eintragen. Antworten werden auf ganze Schritte gerundet.",
  field_bands: "Grenzen der Klassen",
  hint_bands:
    "Eine pro Zeile und aufsteigend, etwa 0, 18, 40, 65. Zu einer Klasse gehört ihre untere " +
    "Grenze.",
  field_rows_text: "Frage für die Zeilen",
  field_rows: "Antworten in den Zeilen, jede für sich",
  field_columns_text: "Frage für die Spalten",
  field_columns: "Antworten in den Spalten, eine pro Zeile",
  field_skip: "„Keine Angabe“ anbieten",
  field_branch: "Wer gefragt wird",
  branchNone: "Alle",
  branchQuestion: "Nur wenn: {number}. {text}",
  branchItems: "Gestellt bei diesen Antworten",
  questionAdd: "Frage hinzufügen",
  questionOther: "Andere Arten, und „keine Angabe“",
  questionNumber: "Frage {number}",
  questionMoved: "Frage {from} ist jetzt Frage {to}.",
  questionRemoved: "Frage {number} wurde entfernt.",
  question_up: "Nach oben",
  question_down: "Nach unten",
  question_remove: "Entfernen",
  upLabel: "Nach oben: Nummer {number}",
  downLabel: "Nach unten: Nummer {number}",
  removeLabel: "Entfernen: Nummer {number}",
  fileTitle: "Einen Fragebogen aus einer Datei laden",
  fileLabel: "TOML-Datei",
  fileHint: "Wie für faircount survey create --questionnaire. Sie ersetzt, was oben steht.",
  fileLoaded: "Fragen aus {file} geladen: {count}.",
  otherLanguages:
    "Die Datei hat die Texte auch in diesen Sprachen: {languages}. Ändern lassen sie sich nur in " +
    "der Datei.",
  otherLanguagesRemove: "Die anderen Sprachen entfernen",
  previewError: "95-%-Fehler: {error}",
  errorPoints: "±\u00a0{error} Prozentpunkte",
  errorUnits: "±\u00a0{error} (Mittelwert)",
  previewShare: "Anteil an Epsilon: {epsilon} (Gruppe {group})",
  previewUseless:
    "Aus dieser Frage lässt sich nichts lernen. Laden Sie mehr Personen ein, stellen Sie weniger " +
    "Fragen, oder bieten Sie weniger Antworten an.",
  previewTarget: "Von der Datei gewünscht: ± {target} Prozentpunkte.",
  field_owner: "Wer fragt",
  field_purpose: "Wofür das Ergebnis gebraucht wird",
  field_contact: "Kontaktadresse",
  field_users: "Zahl der eingeladenen Personen",
  field_response_rate: "Erwartete Rücklaufquote in Prozent (freiwillig)",
  hint_response_rate:
    "Wie viele der Eingeladenen vermutlich antworten; üblich sind 30 bis 70 %. Der Fehler wird für " +
    "so viele Antworten genannt, ohne Angabe für fast alle.",
  field_minimum: "Mindestzahl der Antworten",
  hint_minimum:
    "Eine Zahl oder ein Anteil wie 40%: Bei weniger Antworten gibt es kein Ergebnis. Leer " +
    "bedeutet eine Zahl, die zur Umfrage passt, meist ein Viertel der Eingeladenen.",
  field_people: "Namen oder Adressen (freiwillig)",
  hint_people:
    "Eine Person pro Zeile, statt der Zahl. Sie bleiben auf diesem Rechner; kein Server bekommt " +
    "sie.",
  sheetLabel: "Tabelle der Personen (freiwillig)",
  sheetHint:
    "Eine Tabelle als CSV oder XLSX; ihre erste Zeile benennt die Spalten. Sie bleibt auf diesem " +
    "Rechner, kein Server bekommt sie. Alle Spalten stehen später neben den Einladungen.",
  sheetFound: "{count} Personen in {file}.",
  sheetFrom: "Dieselben {count} Personen wie in {survey}.",
  sheetColumn: "Spalte, die Personen unterscheidet, etwa ihre E-Mail-Adresse",
  sheetChoose: "Spalte auswählen",
  sheetFirst: "Die ersten: {first}",
  sheetEncoding:
    "Die Datei ist nicht UTF-8 und wurde so gelesen, wie Excel sie schreibt. Prüfen Sie, ob die " +
    "Namen stimmen, oder speichern Sie sie als CSV UTF-8.",
  sheetRemove: "Tabelle entfernen",
  sheetOthers: "Andere Personen einladen",
  timeTitle: "Wie lange geantwortet werden kann",
  timeFor: "Für",
  timeUntil: "Bis",
  timeUnit: "Tage oder Stunden",
  unit_days: "Tage",
  unit_hours: "Stunden",
  field_open_for: "Wie lange geantwortet werden kann",
  timeCloses: "Datum und Uhrzeit des Endes",
  timeNoteFor: "Jetzt geöffnet, endet sie am {closes} (Zeitzone: {zone}).",
  timeNoteUntil: "Sie endet am {closes} (Zeitzone: {zone}), wann immer Sie sie öffnen.",
  field_invitation_language: "Sprache der Einladungen, Mails und Ergebnisse",
  field_epsilon: "Epsilon: wie viel das Ergebnis über eine Antwort verraten darf",
  hint_epsilon: "Kleinere Werte schützen besser, machen das Ergebnis aber ungenauer. 1 ist üblich.",
  field_delta: "Delta: Wahrscheinlichkeit, dass mehr verraten wird",
  hint_delta: "0,000001 ist üblich.",
  field_population: "Name dieser Personengruppe (freiwillig)",
  hint_population:
    "Umfragen in derselben Gruppe teilen sich ein Privatheitsbudget, das nie erhöht wird. Ohne " +
    "Namen hat diese Umfrage ein eigenes.",
  field_budget_epsilon: "Epsilon für alle Umfragen der Gruppe",
  field_budget_delta: "Delta für alle Umfragen der Gruppe",
  field_name: "Kurzer Name",
  hint_name: "Buchstaben, Ziffern, - und _. So heißt dann auch der Ordner der Umfrage.",
  create: "Umfrage und Einladungen anlegen",
  creating: "Schlüssel und Einladungen werden erzeugt …",
  adviceTitle: "Was zu erwarten ist",
  adviceFirst:
    "Schreiben Sie Ihre Frage und die möglichen Antworten. Hier sehen Sie dann, wie genau das " +
    "Ergebnis wird.",
  adviceError: "95-%-Fehler: ± {error} %",
  adviceText:
    "In 95 von 100 solchen Umfragen weicht ein Anteil derer, die antworten, höchstens so weit ab, " +
    "wenn {responses} von {invited} Personen antworten. Verfahren: {mechanism}.",
  adviceLargest: "Größter 95-%-Fehler: {error} (Frage {number})",
  adviceTextSeveral:
    "In 95 von 100 solchen Umfragen liegt eine Schätzung höchstens um ihren 95-%-Fehler daneben, " +
    "wenn {responses} von {invited} Personen antworten. Verfahren: {mechanism}.",
  adviceGroups:
    "Epsilon gilt für alle Antworten einer Person zusammen. Fragen einer Gruppe teilen sich ihr " +
    "Rauschen; eine einzelne Antwort verrät höchstens den Anteil ihrer Gruppe.",
  adviceMinimumSeveral:
    "Die Mindestzahl der Antworten ist {minimum}; bei so wenigen sind die Fehler {times}-mal so " +
    "groß.",
  adviceMinimumSame: "Die Mindestzahl der Antworten ist {minimum}.",
  adviceProvenSheet:
    "Jede Antwort ist nachweislich ein Bogen möglicher Antworten, ein manipuliertes Programm kann " +
    "also nicht mehr zählen.",
  adviceNotSeveral:
    "Aus einigen dieser Fragen würden Sie nichts lernen, es steht daneben. Laden Sie mehr " +
    "Personen ein, stellen Sie weniger Fragen, bieten Sie weniger Antworten an, oder erlauben Sie " +
    "ein größeres Epsilon.",
  adviceMinimum:
    "Die Mindestzahl der Antworten ist {minimum}; bei so wenigen ist der 95-%-Fehler ± {error} %.",
  adviceSure:
    "Wenn wie erwartet {expected} von {invited} Personen antworten, ist die Mindestzahl erreicht.",
  adviceChance:
    "Wenn wie erwartet im Mittel {expected} von {invited} Personen antworten, wird die Mindestzahl " +
    "von {minimum} mit einer Wahrscheinlichkeit von {chance} % erreicht.",
  adviceTooFew:
    "Sie erwarten {expected} Antworten, aber mindestens {minimum} sind nötig. Laden Sie mehr " +
    "Personen ein, oder wählen Sie eine kleinere Mindestzahl.",
  adviceAllowance:
    "Das Rauschen kommt hier von den Teilnehmenden: Eine kleinere Mindestzahl macht das Ergebnis " +
    "ungenauer.",
  adviceProven:
    "Jede Antwort ist nachweislich genau eine Stimme: Ein manipuliertes Programm zählt nicht " +
    "mehrfach.",
  adviceUnproven:
    "Die Antworten sind nicht nachweislich eine Stimme: Ein manipuliertes Programm könnte jede " +
    "Zahl verändern.",
  adviceCondition: "Das Versprechen gilt unter dieser Bedingung: {condition}.",
  adviceNot:
    "Diese Umfrage würde nichts aussagen: Der Fehler ist größer als der durchschnittliche Anteil " +
    "einer Antwort. Laden Sie mehr Personen ein, bieten Sie weniger Antworten an oder erlauben " +
    "Sie ein größeres Epsilon.",
  adviceWeak:
    "Die Teilnehmenden werden gewarnt, dass das kaum noch Schutz ist. Wählen Sie ein kleineres " +
    "Epsilon oder Delta: 1 und 0,000001 sind üblich.",
  participantsTitle: "Was die Teilnehmenden lesen werden",
  adviceAnyway: "Trotzdem anlegen; ich habe gelesen, was dagegen spricht.",
  adviceExample: "Wären alle Antworten gleich häufig, könnte das Ergebnis so aussehen:",
  adviceBar: "{share} %, von {low} bis {high} %",
  budgetKnown:
    "Diese Gruppe hat schon ein Budget: Epsilon {epsilon} insgesamt, {spent} ausgegeben, {left} " +
    "übrig. Es gilt weiter, unabhängig davon, was Sie hier eingeben.",

  detailsTitle: "Technische Einzelheiten: Server, Schlüssel, Verfahren",
  surveyServers:
    "Den Koordinator (S1) betreibt {s1} (Schlüssel {s1Key}), den Aggregator (S2) {s2} " +
    "(Schlüssel {s2Key}).",
  surveyOneOperator:
    "Ein Betreiber hat beide Server und könnte die Anteile zusammenführen: Das ist ein Probelauf.",
  surveyPlanned: "Verfahren {mechanism}; geplant: Epsilon {epsilon}, Delta {delta}.",
  tooFew:
    "Wenn es so weitergeht, haben bis zum Ende nur {expected} Personen geantwortet, aber " +
    "{minimum} sind nötig. Erinnern Sie die anderen oder verlängern Sie die Umfrage.",
  coordinatorAway:
    "Der Koordinator ist gerade nicht erreichbar, daher kann der Stand hier veraltet sein. Nichts " +
    "ist verloren, und diese Seite versucht es weiter.",
  coordinatorSilent:
    "Der Koordinator nennt den Stand dieser Umfrage gerade nicht. Diese Seite versucht es weiter.",
  surveyDeleted:
    "Diese Umfrage wurde auf beiden Servern gelöscht. Ihr Ergebnis bleibt in diesem Ordner.",
  labelTitle: "Was Sie versprechen",
  labelText:
    "Der Datenschutz-Steckbrief sagt auf einer Seite, was diese Umfrage verspricht und was nicht, " +
    "etwa für Ihr Intranet; die anderen Dateien sagen dasselbe für Programme. Alle Zahlen werden " +
    "beim Herunterladen neu berechnet.",
  labelPage: "Datenschutz-Steckbrief (HTML)",
  labelJson: "Steckbrief für Programme (JSON)",
  labelYaml: "Steckbrief für Programme (YAML)",
  moreTitle: "Weiteres",
  moreRepeat:
    "Sie können dieselben Personen dasselbe noch einmal fragen, aus demselben Privatheitsbudget, " +
    "oder eine neue Umfrage als Kopie von dieser beginnen.",
  moreCopy: "Sie können eine neue Umfrage als Kopie von dieser beginnen.",
  repeat: "Dieselben Personen noch einmal fragen",
  copy: "Als neue Umfrage kopieren",
  delete: "Auf beiden Servern löschen",
  deleteSure:
    "Diese Umfrage auf beiden Servern löschen? Die Teilnehmenden können dann nicht mehr prüfen, ob " +
    "sie gezählt wurden. Was vom Privatheitsbudget ausgegeben ist, bleibt ausgegeben, und dieser " +
    "Ordner behält das Ergebnis.",
  deleteYes: "Ja, löschen",
  open: "Umfrage öffnen",
  close: "Jetzt schließen",
  closeSure: "Jetzt schließen? Danach kann niemand mehr antworten.",
  closeYes: "Ja, schließen",
  extend: "Um einen Tag verlängern",
  abort: "Ohne Ergebnis beenden",
  abortSure: "Die Umfrage ohne Ergebnis beenden? Das lässt sich nicht rückgängig machen.",
  abortYes: "Ja, beenden",

  progressTitle: "Fortschritt",
  phasesLabel: "Phasen der Umfrage",
  phaseNow: "jetzt",
  phaseLast: "zuletzt bekannt",
  phaseDraft: "Vorbereitet",
  phase_draft: "Noch nicht geöffnet",
  phase_enrolling: "Teilnehmende melden sich an",
  phase_confirmed: "Die Liste der Teilnehmenden ist bestätigt",
  phase_indicating: "Teilnehmende geben an, welche Antworten sie melden",
  phase_sharing: "Teilnehmende tauschen Anteile aus",
  phase_submitting: "Personen antworten",
  phase_counting: "Beide Server zählen",
  phase_unmasking: "Teilnehmende helfen, die Masken der Ausgeschiedenen zu entfernen",
  phase_aggregated: "Das Ergebnis wird berechnet",
  phase_published: "Ergebnis veröffentlicht",
  phase_aborted: "Ohne Ergebnis beendet",
  answersLabel: "Antworten bisher",
  answers: "{responses} von {invited} Personen haben geantwortet",
  lastKnown:
    "Als der Koordinator zuletzt erreichbar war, am {when}: {phase}; {responses} von {invited} " +
    "Personen hatten geantwortet.",
  lastNothing: "Noch ist nichts bekannt: Der Koordinator war aus diesem Ordner nie erreichbar.",
  answersMissing:
    "Mindestens {minimum} sind nötig (die Marke auf dem Balken): Es fehlen noch {missing}.",
  answersEnough: "Die Mindestzahl von {minimum} (die Marke auf dem Balken) ist erreicht.",
  answersWithdrawn: "Zurückgezogen und nicht gezählt: {withdrawn}.",
  waitsTitle: "Wie es weitergeht",
  waits_nobody: "Gar nicht: Die Umfrage ist zu Ende.",
  waits_owner: "Die Umfrage ist bereit. Sobald Sie sie öffnen, können Personen antworten.",
  waits_people:
    "Antworten sind möglich bis zum {closes}. Dann schließt der Koordinator die Umfrage und " +
    "zählt gemeinsam mit dem Aggregator. Sie können sie auch früher schließen.",
  waits_held:
    "Zum Ende der Frist gab es zu wenige Antworten, deshalb bleibt die Umfrage offen. Erinnern " +
    "Sie die anderen, oder verlängern Sie sie. Sie können sie schließen, sobald die Mindestzahl " +
    "erreicht ist. Am {closes} endet sie von selbst, bei zu wenigen Antworten ohne Ergebnis.",
  waits_peopleOpen:
    "Antworten sind möglich, bis Sie die Umfrage schließen. Dann zählt der Koordinator gemeinsam " +
    "mit dem Aggregator.",
  waits_coordinator: "Der Koordinator wendet sich gleich an den Aggregator. Sie müssen nichts tun.",
  waits_aggregator:
    "Der Koordinator wartet auf den Aggregator, seit {since}. Keiner von beiden kann allein ein " +
    "Ergebnis veröffentlichen oder die Umfrage beenden. Nichts ist verloren, und Sie müssen nichts " +
    "tun; wenn es anhält, sagen Sie es dem Betreiber des Aggregators.",
  waitsDetails: "Einzelheiten für die Betreiber der Server",
  waitsAgain: "Versuche bisher: {tries}. Der nächste ist am {when}.",
  waitsProblem: "Der Koordinator sagt, warum der Aggregator noch nicht geantwortet hat (englisch):",
  aggregatorAsked: "Der Stand beim Aggregator wird abgefragt …",
  aggregatorAway_people:
    "Der Aggregator ist gerade nicht erreichbar. Geantwortet werden kann trotzdem: Er wird " +
    "gebraucht, wenn die Antworten gezählt werden.",
  aggregatorAway_owner:
    "Der Aggregator ist gerade nicht erreichbar. Sie können die Umfrage trotzdem öffnen: Er wird " +
    "gebraucht, wenn die Antworten gezählt werden.",
  aggregatorSilent: "Der Aggregator nennt seinen Stand gerade nicht:",
  aggregator_waiting: "Der Aggregator weiß, wer eingeladen ist, und wartet auf den Koordinator.",
  aggregator_list:
    "Der Aggregator hat die Liste der Teilnehmenden bestätigt und wartet auf den Koordinator.",
  aggregator_counting:
    "Der Aggregator hat das Privatheitsbudget reserviert und entschlüsselt seine Anteile der " +
    "Antworten.",
  aggregator_published: "Der Aggregator hat das Ergebnis unterschrieben.",
  aggregator_aborted: "Der Aggregator hat unterschrieben, dass es kein Ergebnis gibt.",
  refusedNone: "Keine Nachricht wurde abgelehnt.",
  refusedCaption: "Abgelehnte Nachrichten, nach Grund",
  refusedReason: "Grund",
  refusedCoordinator: "Koordinator",
  refusedAggregator: "Aggregator",
  reason_malformed: "Nicht lesbar",
  reason_conflict: "Dasselbe Gerät hatte schon etwas anderes gesendet",
  reason_unknown: "Unbekannte Einladung",
  reason_unsigned: "Falsche Unterschrift oder falscher Prüfcode",
  reason_late: "Zu spät",
  reason_early: "Zu früh",
  reason_full: "Die Umfrage ist voll",
  reason_wrong_digest: "Für eine andere Umfrage gemacht",
  reason_too_few: "Zu wenige Personen",
  reason_too_many_attempts: "Zu viele Versuche",
  reason_disconnected: "Die übrigen Personen können einander nicht verbergen",
  reason_wrong_shares: "Anteile, die nicht zur Liste des Koordinators passen",
  reason_closed: "Die Umfrage oder ihr Budget ist geschlossen",
  reason_invitation_used: "Ein anderes Gerät hat die Einladung verwendet",
  reason_invitation_replaced: "Die Einladung wurde ausgetauscht",

  resultTitle: "Ergebnis",
  resultCaption: "Geschätzte Anteile unter den {included} gezählten Personen",
  resultItem: "Antwort",
  resultShare: "Schätzung",
  resultRange: "95-%-Intervall",
  resultConsistentHead: "Stimmig",
  resultText:
    "Balken: die Schätzung, die im Mittel stimmt, aber unter 0 liegen kann. Linie: ihr " +
    "Intervall; in 95 von 100 solchen Umfragen enthält es den wahren Anteil unter den gezählten " +
    "Personen.",
  resultAnswered: "Geschätzte Anteile unter denen, die geantwortet haben",
  resultSide: "Geschätzte Anteile der Antworten auf: {text}",
  resultMeasure: "Geschätzt für die {included} gezählten Personen",
  gridCaption:
    "{rows} (Zeilen) und {columns} (Spalten): geschätzte Anteile unter den {included} gezählten " +
    "Personen",
  gridAll: "Alle",
  resultTextSeveral:
    "Balken oder Marke auf einem Bereich: die Schätzung, die im Mittel stimmt, aber außerhalb des " +
    "Möglichen liegen kann. Linie: ihr Intervall; in 95 von 100 solchen Umfragen enthält es die " +
    "wahre Zahl unter den gezählten Personen.",
  resultNearest:
    "Hohe Marke und Spalte „Stimmig“: die nächste Zahl, die wahr sein kann. Anteile sind nie " +
    "negativ, und wo alle genau eine Antwort geben, ergeben sie zusammen 100 %; kleine werden zu " +
    "groß und große zu klein geschätzt.",
  resultProvenSheet:
    "Gezählte Antworten: {counted}, jede nachweislich ein Bogen möglicher Antworten. Abgewiesen: " +
    "{refused}.",
  resultProven:
    "Gezählte Antworten: {counted}, jede nachweislich genau eine Stimme. Abgewiesen: {refused}.",
  resultConsistent:
    "Hohe Marke: der stimmige Anteil. Diese Anteile sind nie negativ und ergeben zusammen 100 %, " +
    "aber kleine werden zu groß und große zu klein geschätzt.",
  trendTitle: "Änderungen seit {before}",
  trendCaption: "Unter denselben Personen, in Prozentpunkten",
  trendCaptionMean: "Unter denselben Personen, Änderung von Mittelwert oder Median",
  trendChange: "Änderung",
  trendRange: "{low} bis {high}",
  trendMeaning: "Bedeutung",
  trendClear: "geändert",
  trendNoise: "kann Rauschen sein",
  resultNone: "Die Umfrage endete ohne Ergebnis. Der Grund:",
  ending_owner: "Wer die Umfrage macht, hat sie beendet.",
  ending_too_few_responses:
    "Zu wenige haben geantwortet: {responses} Personen, und {minimum} sind nötig.",
  ending_too_few_enrolled:
    "Zu wenige haben sich angemeldet: {enrolled} Personen, und {minimum} sind nötig.",
  ending_too_few_left:
    "Zu wenige sind bis zum Ende geblieben: {left} Personen, und {minimum} sind nötig.",
  ending_too_few_readable:
    "Zu wenige Antworten ließen sich entschlüsseln und zusammenzählen: {readable}, und {minimum} " +
    "sind nötig.",
  ending_over_budget: "Das Privatheitsbudget dieser Gruppe reicht für diese Umfrage nicht aus.",
  ending_aggregator_restored:
    "Der Aggregator (S2) wurde während der Umfrage aus einer Sicherung wiederhergestellt.",
  ending_coordinator_restored:
    "Der Koordinator (S1) wurde während der Umfrage aus einer Sicherung wiederhergestellt und " +
    "konnte nicht fortfahren.",
  ending_reports_lost:
    "Antworten wurden beschädigt oder gingen verloren, nachdem feststand, welche gezählt werden.",
  ending_attempts_used: "Bei allen {attempts} Versuchen zu zählen fehlten Teilnehmende.",
  ending_key_lost: "Der Schlüssel einer ausgeschiedenen Person ließ sich nicht wiederherstellen.",
  ending_no_substitute: "Niemand war übrig, um für eine ausgeschiedene Person einzuspringen.",
  ending_not_invited: "Von den Angemeldeten war niemand eingeladen.",
  ending_corrupt_sum: "Die Summe lag außerhalb dessen, was ehrliche Antworten ergeben können.",
  ending_aggregator_refused: "Der Aggregator (S2) hat die Liste der Antworten abgelehnt (Grund {reason}).",
  ending_aggregator_contradiction:
    "Der Koordinator (S1) meldet, dass der Aggregator (S2) sich widersprochen hat.",
  ending_coordinator_contradiction:
    "Der Aggregator (S2) hat festgestellt, dass der Koordinator (S1) sich widersprochen hat.",
  ending_aggregator_secret_lost:
    "Der Aggregator (S2) hat einen geheimen Wert verloren, auf den er sich festgelegt hatte.",
  ending_operator: "Der Betreiber eines der Server hat die Umfrage angehalten.",
  ending_unknown: "Die Server haben einen Grund genannt, den diese Seite nicht kennt.",
  resultSpent:
    "Ihr Privatheitsbudget ist trotzdem ausgegeben, weil der Aggregator seine Anteile der " +
    "Antworten schon bekommen hatte.",
  resultNotSpent: "Es wurde kein Privatheitsbudget ausgegeben.",
  resultAgain:
    "Jede weitere Umfrage unter denselben Personen kostet wieder Privatheitsbudget, denn was sie " +
    "verraten, summiert sich.",
  guaranteeTitle: "Garantie der Privatheit",
  guaranteeCaption: "Geplant vor der Umfrage, und erreicht mit den gezählten Personen",
  guaranteeWhen: "Garantie",
  guaranteeDetails: "Einzelheiten der Garantie: Epsilon, Delta, Bedingungen",
  guaranteePlanned: "Geplant",
  guaranteeKept: "Erreicht",
  promise:
    "Angenommen, jemand hält zwei Antworten einer Person für gleich wahrscheinlich. Selbst wer " +
    "das Ergebnis kennt, kann dann höchstens zu {sure} % sicher sein, welche es ist.",
  promiseSeveral:
    "Angenommen, jemand hält zwei Arten, alle Fragen zu beantworten, bei einer Person für gleich " +
    "wahrscheinlich. Selbst wer die Ergebnisse kennt, kann dann höchstens zu {sure} % sicher sein, " +
    "welche es ist. Das gilt für alle Antworten der Person zusammen.",
  promiseSingle:
    "Bei einer einzelnen Antwort kann diese Person höchstens zu {sure} % sicher sein.",
  guaranteeOneOperator:
    "Ein Betreiber hat beide Server betrieben und hätte jede Antwort lesen können: Das war ein " +
    "Probelauf. Die Garantie gilt gegenüber allen anderen.",
  guaranteeNoOperator:
    "Niemand ist als Betreiber der Server genannt: Vielleicht hat einer beide betrieben und hätte " +
    "jede Antwort lesen können. Das war ein Probelauf. Die Garantie gilt gegenüber allen anderen.",
  guaranteeExact:
    "Genau: ({epsilon}, {delta})-Differential-Privacy, wenn die Antwort einer Person ersetzt " +
    "wird. Gegenüber: {against}. Bedingung: {condition}.",
  against_reader: "allen, die das Ergebnis lesen",
  against_participants:
    "bis zu {insiders} Teilnehmenden, die zusammenlegen, was sie wissen, und das Ergebnis lesen",
  against_s1: "dem Koordinator (S1), der das Ergebnis liest",
  against_s2: "dem Aggregator (S2), der das Ergebnis liest",
  against_s1_participants: "dem Koordinator (S1), zusammen mit beliebig vielen Teilnehmenden",
  against_s2_participants: "dem Aggregator (S2), zusammen mit beliebig vielen Teilnehmenden",
  against_group_insiders:
    "Teilnehmenden jeder Gruppe, die zusammenlegen, was sie wissen, und das Ergebnis lesen",
  against_collector: "allen, die den eigenen Bericht einer Person sehen",
  void_seeded:
    "Es gilt keine Garantie: Der Zufall hatte einen festen Anfangswert, so dass ihn jeder " +
    "wiederholen kann.",
  condition_always: "keine, es gilt, was immer die Personen antworten",
  condition_floor:
    "jede Antwort wird von mindestens {floor} anderen Personen gewählt (von denen {insiders} " +
    "zusammenarbeiten und {dropouts} ausfallen dürfen)",
  condition_nobody_left_out:
    "der Koordinator (S1) lässt niemanden wegen der gemeldeten Antworten aus",
  condition_no_helper_looks: "keine helfende Person sieht nach, was sie bekommt",
  condition_s1_noise: "der Koordinator (S1) fügt sein Rauschen hinzu und hält es geheim",
  condition_s2_noise: "der Aggregator (S2) fügt sein Rauschen hinzu und hält es geheim",
  condition_one_operator: "niemand, der beide Server betreibt, fügt deren Anteile zusammen",
  condition_either_noise:
    "der Koordinator (S1) oder der Aggregator (S2) fügt sein Rauschen hinzu und hält es geheim",
  condition_public_groups: "es ist öffentlich, in welcher Gruppe eine Person ist",
  condition_public_groups_by:
    "es ist öffentlich, in welcher Gruppe eine Person ist (Spalte {column})",
  condition_one_group: "niemand nimmt in zwei der Gruppen teil",
  condition_public_items: "die Liste der Antworten ist öffentlich",
  condition_public_missing: "es ist öffentlich, wer keine Antwort hat",
  condition_public_outside: "es ist öffentlich, wer eine Antwort außerhalb der Liste hat",
  condition_rows_are_people: "jede Zeile ist eine andere Person",
  condition_other: "{text}",
  downloadTitle: "Downloads",
  downloadText:
    "Jede Datei nennt die Umfrage und die Garantie. Bilder, XLSX und HTML sind in der Sprache der " +
    "Umfrage; CSV und JSON sind für Programme, auf Englisch.",

  budgetTitle: "Privatheitsbudget",
  budgetShared: "Gruppe: {population}. Alle Umfragen unter diesen Personen teilen sich ein Budget.",
  budgetOwn: "Diese Umfrage hat ein eigenes Budget.",
  budgetSpent: "Ausgegeben: Epsilon {spent} von {epsilon}, Delta {spentDelta} von {delta}",
  budgetCaption:
    "Was jede Umfrage ausgegeben hat, die älteste zuerst; der Rahmen endet beim ganzen Budget",
  budgetAfter: "Insgesamt",
  budgetStatus: "Stand",
  budgetUntouched: "Noch ist nichts ausgegeben: Das geschieht, wenn die Antworten gezählt werden.",
  budgetTogether:
    "Zusammen kosten sie weniger als die Summe, weil erklärt wurde, dass sie nicht voneinander " +
    "abhängen.",
  budgetElsewhere: "{id}, nicht in diesem Ordner",
  budgetClosed:
    "Der Aggregator wurde aus einer Sicherung wiederhergestellt. Sein Betreiber muss die seither " +
    "ausgestellten Reservierungen vorlegen, bevor diese Gruppe wieder gefragt werden kann.",
  charge_reserved: "Reserviert",
  charge_spent: "Ausgegeben",
  charge_cancelled: "Storniert",

  invitationsTitle: "Einladungen",
  invitationsText:
    "Für {people} Personen. Wer eine Einladung hat, kann anstelle dieser Person antworten: " +
    "Halten Sie die Dateien geheim.",
  invitationsTable: "Tabelle der Einladungen (CSV)",
  invitationsPrint: "Druckversion mit QR-Codes",
  invitationsRemind: "Wer noch nicht geantwortet hat (CSV)",
  invitationsNone: "Es gibt noch keine Einladungen.",
  invitationsInterrupted:
    "Ein Server war nicht erreichbar, während die Einladungen erstellt wurden. Noch kann niemand " +
    "antworten. Machen Sie weiter: Es bleibt bei denselben Einladungen.",
  invitationsMake: "Einladungen erstellen",
  invitationOne: "Eine Einladung anzeigen",
  invitationWho: "Person",
  invitationChoose: "Person auswählen",
  invitationQr: "QR-Code mit dem Link von {person}",
  invitationLink: "Scannen Sie ihn mit einem Telefon oder öffnen Sie diesen Link:",
  invitationCode: "Oder fügen Sie diesen Code auf der Seite ein:",
  invitationSecret: "Sie gilt einmal, und nur für diese Person.",
  reissue: "Verlorene Einladung ersetzen",
  reissueSure:
    "Diese Einladung ersetzen? Die alte gilt dann nicht mehr. Wenn sie schon benutzt wurde, kann " +
    "sie nicht ersetzt werden.",
  reissueYes: "Ja, ersetzen",
  reissued: "Das ist die neue Einladung; die alte gilt nicht mehr.",

  mailTitle: "E-Mail",
  mailServer:
    "Mails gehen über {host}, in ruhigem Takt. Niemand bekommt dieselbe Mail zweimal.",
  mailNoServer:
    "Um von hier Mails zu senden, nennen Sie Ihren Mailserver in FAIRCOUNT_SMTP_HOST und starten " +
    "Sie das Dashboard neu. Bis dahin können Sie die Mails ansehen und mit einem anderen Programm " +
    "senden.",
  mailNoAddresses:
    "Diese Personen haben keine E-Mail-Adressen. Drucken Sie die Einladungen, oder legen Sie eine " +
    "Umfrage mit einer Tabelle der Personen an.",
  mailNotYet: "Öffnen Sie die Umfrage, bevor Sie Mails senden: Vorher gelten die Links nicht.",
  mailAway:
    "Solange der Koordinator nicht sagen kann, wer geantwortet hat, können keine Mails gesendet " +
    "werden.",
  mailBefore: "Bisher gesendet: Einladungen: {invitation}, Erinnerungen: {reminder}.",
  mailSender: "Absender",
  mailPreview: "Mails erst ansehen",
  mailInvite: "Einladungen senden",
  mailInviteSure:
    "Einladungen von {sender} über {host} senden? {count} Personen sind eingeladen; wer schon eine " +
    "Einladung hat, bekommt keine zweite.",
  mailInviteYes: "Ja, Einladungen senden",
  mailRemind: "Erinnern, wer noch nicht geantwortet hat",
  mailRemindSure:
    "Erinnerungen von {sender} über {host} senden? {count} Personen haben noch nicht geantwortet.",
  mailRemindYes: "Ja, erinnern",
  mailAgain: "Jetzt noch einmal erinnern",
  mailWritten:
    "{files} Mails liegen in {folder}, und keine wurde gesendet. Halten Sie sie geheim: Mit einem " +
    "Link kann jeder antworten.",
  mailNobody: "Alle haben geantwortet: Es gibt keine Mail zu schreiben.",
  mailFirst: "Die erste Mail, an {to}",
  mailRunning: "Wird gesendet: {sent} von {due}",
  mailStop: "Senden anhalten",
  mailDone: "Gesendet: {sent}",
  mailEnded: "Gesendet, bevor es anhielt: {sent} von {due}. Senden Sie noch einmal, um fortzufahren.",
  mailRefused: "Der Mailserver hat die Adresse abgelehnt von: {people}",
  mailPostponed: "Vorerst nicht gesendet; senden Sie später noch einmal: {people}",
  mailUnsure:
    "Ein Programm wurde unterbrochen, während der Mailserver diese Mails hatte. Diese Personen " +
    "haben ihre vielleicht bekommen: {people}",
  mailRetry: "Noch einmal an sie senden",
};

export const LANGUAGES = { en: { ...en, ...englishLevels }, de: { ...de, ...germanLevels } };
