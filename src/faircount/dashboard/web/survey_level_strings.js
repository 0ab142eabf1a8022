// What the dashboard says about privacy levels; part of the sentences in strings.js.

export const en = {
  // creation
  protectionTitle: "Who decides how well answers are protected?",
  protection_one: "I do: the same protection for everybody",
  protection_levels: "Everybody: each person chooses a privacy level, and nobody learns it",
  levelsTitle: "Privacy levels",
  levelsHint:
    "Two or three levels, the strongest first; empty the last one to offer two. People read the " +
    "names; “very strong”, “strong” and “normal” appear in their language. The strongest level is " +
    "preselected, so plan for it. All questions must be one of several answers, or yes and no.",
  level_name: "Name of level {number}",
  level_epsilon: "Epsilon of level {number}",
  adviceLevelsBase:
    "That is the error of the table in which everybody is counted once, at the strongest level.",
  adviceLevelsAlike:
    "If all levels are chosen equally often, about {inside} of {responses} people are counted a " +
    "second time. If they also answer like everybody, the 95 % error is ± {error} %.",
  adviceLevelsOne:
    "One level with epsilon = {epsilon} for all would give that error without any assumption.",
  adviceLevelsCostly:
    "The weakest level has more than three times the epsilon of the strongest. Offering it costs " +
    "those who choose the strongest: whoever guesses at their answer and their level together can " +
    "become {both} % sure, instead of {sure} %.",

  // result
  levelsAgain: "Counted a second time",
  levelsTwice: "About {twice} of {included} people were counted a second time ({low} to {high}).",
  levelsBase: "The estimates above count everybody once. They hold whatever people chose.",
  levelsAlike: "If people who chose weaker protection answer like everybody",
  levelsAlikeText:
    "These estimates are more exact if the condition is true, and wrong if it is not. Publish them " +
    "only together with it.",
  levelsDiffer:
    "Those counted a second time seem to answer differently (p = {p}). Rely on the estimates above.",
  levelsNotDiffer:
    "A test has found no difference between those counted a second time and everybody (p = {p}). " +
    "That does not prove that there is none.",
  levelsGuarantee: "{name}: epsilon = {epsilon} for the answer, {both} for answer and level together.",
  levelsGuaranteeText: "That is the weakest privacy level. Each level guarantees:",

  // errors
  problem_number_of_levels: "Offer at least two privacy levels, and at most {most}.",
  problem_level_name: "The name of a privacy level has 1 to 40 visible characters.",
  problem_level_twice: "The privacy level {level} is there twice.",
  problem_levels_not_ascending:
    "Name the privacy levels from the strongest to the weakest, each with a larger epsilon than the " +
    "one before.",
  problem_level_epsilon: "Epsilon of level {number}: please enter a number above 0.",
  problem_levels_elsewhere:
    "Hidden privacy levels need two servers and reports that are proven. Leave mechanism and " +
    "topology to the planner.",
  problem_levels_and_epsilon:
    "With privacy levels epsilon is that of the weakest level. Leave it out.",
  problem_hidden_levels:
    "{survey} has hidden privacy levels. Results of such surveys are not combined with others.",
  problem_level_kinds:
    "With privacy levels every question has exactly one answer: one of several, or yes and no. Ask " +
    "the others in another survey.",
  problem_unknown_level:
    "The table of people names the privacy level {level}, which has no epsilon. The levels are: " +
    "{names}.",
  problem_empty_level:
    "Nobody has the privacy level {level}. Leave it out, or write it into the table.",
  problem_level_expects_too_few:
    "Fewer people are expected to respond at the privacy level {level} than its minimum of {minimum}.",
  problem_no_levels: "These groups are no privacy levels: their results are shown side by side.",
  problem_too_few_results: "At least two results are needed to combine them.",
  problem_different_questions:
    "Only surveys that ask the same questions, word by word, can be combined.",
  problem_same_survey: "The same survey is given twice. Give each of them once.",
  problem_population_as_a_whole:
    "{population} has a budget for surveys of everybody, and groups have budgets of their own: " +
    "nobody would add up what people lose in both. Name another population if these are other " +
    "people, or ask everybody in one survey.",
  problem_same_population:
    "Two of the surveys ask the same people, {population}. Only surveys of different people can be " +
    "combined.",
  problem_same_person:
    "Somebody is invited to two of the surveys. Only surveys of different people can be combined.",
  problem_people_unknown:
    "A folder does not say who was invited, so nobody can check that the surveys asked different " +
    "people.",
  problem_part_missing: "{part} has no result, so there is nothing to combine yet.",
};

export const de = {
  protectionTitle: "Wer entscheidet, wie gut die Antworten geschützt sind?",
  protection_one: "Ich: derselbe Schutz für alle",
  protection_levels: "Alle selbst: Jede Person wählt eine Schutzstufe, und niemand erfährt sie",
  levelsTitle: "Schutzstufen",
  levelsHint:
    "Zwei oder drei Stufen, die stärkste zuerst; leeren Sie die letzte, um zwei anzubieten. Die " +
    "Namen werden gelesen; „very strong“, „strong“ und „normal“ erscheinen in der Sprache der " +
    "Person. Die stärkste Stufe ist vorausgewählt: Planen Sie mit ihr. Jede Frage muss genau eine " +
    "von mehreren Antworten haben oder Ja und Nein.",
  level_name: "Name der Stufe {number}",
  level_epsilon: "Epsilon der Stufe {number}",
  adviceLevelsBase:
    "Das ist der Fehler der Tabelle, in der alle mit der stärksten Stufe einmal gezählt werden.",
  adviceLevelsAlike:
    "Werden alle Stufen gleich oft gewählt, so zählen etwa {inside} von {responses} Personen ein " +
    "zweites Mal. Antworten sie außerdem wie alle, so ist der 95-%-Fehler ± {error} %.",
  adviceLevelsOne:
    "Eine einzige Stufe mit Epsilon = {epsilon} für alle ergäbe diesen Fehler ohne jede Annahme.",
  adviceLevelsCostly:
    "Die schwächste Stufe hat mehr als das dreifache Epsilon der stärksten. Sie anzubieten kostet " +
    "die, die die stärkste wählen: Wer Antwort und Stufe zugleich errät, kann zu {both} % sicher " +
    "werden statt zu {sure} %.",

  levelsAgain: "Ein zweites Mal gezählt",
  levelsTwice:
    "Etwa {twice} von {included} Personen wurden ein zweites Mal gezählt ({low} bis {high}).",
  levelsBase:
    "Die Schätzungen oben zählen alle einmal. Sie gelten, was immer die Leute gewählt haben.",
  levelsAlike: "Falls Personen mit schwächerem Schutz wie alle antworten",
  levelsAlikeText:
    "Diese Schätzungen sind genauer, wenn die Bedingung stimmt, und falsch, wenn nicht. " +
    "Veröffentlichen Sie sie nur mit ihr zusammen.",
  levelsDiffer:
    "Die zweimal Gezählten scheinen anders zu antworten (p = {p}). Verlassen Sie sich auf die " +
    "Schätzungen oben.",
  levelsNotDiffer:
    "Ein Test hat keinen Unterschied zwischen den zweimal Gezählten und allen gefunden (p = {p}). " +
    "Das beweist nicht, dass es keinen gibt.",
  levelsGuarantee:
    "{name}: Epsilon = {epsilon} für die Antwort, {both} für Antwort und Stufe zusammen.",
  levelsGuaranteeText: "Das ist die schwächste Schutzstufe. Jede Stufe garantiert:",

  problem_number_of_levels: "Bieten Sie mindestens zwei Schutzstufen an, höchstens {most}.",
  problem_level_name: "Der Name einer Schutzstufe hat 1 bis 40 sichtbare Zeichen.",
  problem_level_twice: "Die Schutzstufe {level} kommt zweimal vor.",
  problem_levels_not_ascending:
    "Nennen Sie die Schutzstufen von der stärksten zur schwächsten, jede mit einem größeren Epsilon " +
    "als die vorige.",
  problem_level_epsilon: "Epsilon der Stufe {number}: Bitte geben Sie eine Zahl über 0 ein.",
  problem_levels_elsewhere:
    "Verborgene Schutzstufen brauchen zwei Server und Antworten mit Beweis. Überlassen Sie " +
    "Verfahren und Topologie dem Planer.",
  problem_levels_and_epsilon:
    "Mit Schutzstufen gilt das Epsilon der schwächsten Stufe. Lassen Sie es weg.",
  problem_hidden_levels:
    "{survey} hat verborgene Schutzstufen. Ergebnisse solcher Umfragen werden nicht mit anderen " +
    "zusammengefasst.",
  problem_level_kinds:
    "Mit Schutzstufen hat jede Frage genau eine Antwort: eine von mehreren oder Ja und Nein. " +
    "Stellen Sie die anderen in einer weiteren Umfrage.",
  problem_unknown_level:
    "Die Tabelle der Personen nennt die Schutzstufe {level}, die kein Epsilon hat. Die Stufen sind: " +
    "{names}.",
  problem_empty_level:
    "Niemand hat die Schutzstufe {level}. Lassen Sie sie weg, oder tragen Sie sie in die Tabelle " +
    "ein.",
  problem_level_expects_too_few:
    "Auf der Schutzstufe {level} werden weniger Antworten erwartet als ihre Mindestzahl {minimum}.",
  problem_no_levels:
    "Diese Gruppen sind keine Schutzstufen: Ihre Ergebnisse stehen nebeneinander.",
  problem_too_few_results: "Zum Zusammenfassen braucht es mindestens zwei Ergebnisse.",
  problem_different_questions:
    "Nur Umfragen, die Wort für Wort dasselbe fragen, lassen sich zusammenfassen.",
  problem_same_survey: "Dieselbe Umfrage ist zweimal angegeben. Geben Sie jede einmal an.",
  problem_population_as_a_whole:
    "{population} hat ein Budget für Umfragen unter allen, und Gruppen haben eigene Budgets: " +
    "Niemand würde zusammenzählen, was die Personen in beiden verlieren. Nennen Sie eine andere " +
    "Personengruppe, wenn es andere Personen sind, oder fragen Sie alle in einer Umfrage.",
  problem_same_population:
    "Zwei der Umfragen fragen dieselben Personen, {population}. Nur Umfragen unter verschiedenen " +
    "Personen lassen sich zusammenfassen.",
  problem_same_person:
    "Jemand ist zu zwei der Umfragen eingeladen. Nur Umfragen unter verschiedenen Personen lassen " +
    "sich zusammenfassen.",
  problem_people_unknown:
    "Ein Ordner sagt nicht, wer eingeladen war. So lässt sich nicht prüfen, ob die Umfragen " +
    "verschiedene Personen gefragt haben.",
  problem_part_missing: "{part} hat kein Ergebnis, also gibt es noch nichts zusammenzufassen.",
};
